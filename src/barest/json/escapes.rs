//! How is a long string passed that has an escape in every line?
//!
//! Stopping at each costs more than what is between: programs keep whole configurations in
//! `__metadata__`, as JSON in a string of JSON, where each quote is escaped. So 64 bytes are looked
//! at together, and 64 bits say what they are.
//!
//! ```text
//!   { \ " a \ \ " :    the bytes
//!   . 1 . . 1 1 . .    backslashes
//!   . . 1 . . 1 . .    escaped: behind a backslash that is not escaped itself
//!   . . 1 . . . 1 .    quotes: the second ends the string, since nothing escapes it
//! ```

use super::string::resolve_escape;
use std::array::from_fn;

/// Moves over blocks of 64 bytes in which the string goes on: no quote ends it, no control byte
/// stands in it, and every escape is one. `at` is not inside an escape, and neither is the position
/// that comes back, where all else is left to whoever looks at each byte.
pub fn pass_blocks(bytes: &[u8], mut at: usize) -> usize {
    // The lowest bit says that the block before ended with a backslash that escapes.
    let mut open = 0;
    // Where the last escape ended of those that were looked at; its bytes may look like another.
    let mut passed = at;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        // 1. Mostly there are escaped quotes and nothing else.
        let before = at.checked_sub(1).and_then(|before| bytes[before..].first_chunk());
        if before.is_some_and(|before| has_quotes_alone(block, before, open == 1)) {
            open = u64::from(block[63] == b'\\');
            at += 64;
            continue;
        }
        // 2. Which bytes are escaped, and does an escaped quote stand among them that is not?
        let all_backslashes = bits(block, |byte| byte == b'\\');
        let quotes = bits(block, |byte| byte == b'"');
        let escaped = escaped_by(all_backslashes & !open) | open;
        if has_control(block) || quotes & !escaped != 0 {
            break;
        }
        // 3. Escaped quotes and backslashes are right; other escapes may be wrong, and longer.
        let mut others = escaped & !quotes & !all_backslashes;
        let reached = passed.max(at - open as usize);
        while others != 0 {
            let backslash = at + others.trailing_zeros() as usize - 1;
            others &= others - 1;
            if backslash >= passed {
                match resolve_escape(bytes, backslash) {
                    Ok((_, len)) => passed = backslash + len,
                    Err(_) => return reached,
                }
            }
        }
        open = (all_backslashes & !escaped) >> 63;
        at += 64;
    }
    passed.max(at - open as usize)
}

/// Whether each backslash of a block stands before a quote and each quote behind a backslash, and
/// there is no control byte. `before` are the bytes each one further in front; `open` says whether
/// the first of them is a backslash that escapes.
#[inline(always)]
fn has_quotes_alone(block: &[u8; 64], before: &[u8; 64], open: bool) -> bool {
    let odd = |(&byte, &before): (&u8, &u8)| ((before == b'\\') ^ (byte == b'"')) | (byte < b' ');
    let any_odd = block.iter().zip(before).fold(false, |any, pair| any | odd(pair));
    !any_odd && (before[0] == b'\\') == open
}

#[inline(always)]
fn has_control(block: &[u8; 64]) -> bool {
    block.iter().fold(false, |any, &byte| any | (byte < b' '))
}

/// One bit for each byte, the first lowest.
#[inline(always)]
fn bits(block: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
    // Compared many at a time, as the compiler sees it; then eight ones and zeros, a byte each,
    // move together in the upper byte of a product.
    let ones = block.map(|byte| u8::from(is(byte)));
    (0..8).fold(0, |bits, word| {
        let eight = u64::from_le_bytes(from_fn(|byte| ones[word * 8 + byte]));
        bits | eight.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (word * 8)
    })
}

/// What stands behind a backslash that is not itself escaped, in a block that begins outside of an
/// escape.
fn escaped_by(backslashes: u64) -> u64 {
    // Within a run every second byte is escaped, from its second on, and the byte behind it if that
    // is its turn: of a run that begins at an even place the odd ones, and the other way round.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let behind = backslashes << 1;
    let even_starts = backslashes & !behind & EVEN;
    // Adding the first bit of a run to it flips all of its bits and the one behind.
    let even_runs = backslashes.wrapping_add(even_starts) ^ backslashes;
    behind & (even_runs ^ EVEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_tells_of_its_byte() {
        for place in 0..64 {
            let mut block = [b'x'; 64];
            block[place] = b'"';
            assert_eq!(bits(&block, |byte| byte == b'"'), 1 << place);
        }
        assert_eq!(bits(&[b'"'; 64], |byte| byte == b'"'), u64::MAX);
    }

    #[test]
    fn every_second_backslash_of_a_run_escapes() {
        let mut random = 1u64;
        for round in 0..100_000u64 {
            random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ round;
            // Some dense, some sparse.
            let backslashes = if round % 2 == 0 { random } else { random & random.rotate_left(7) };
            let (mut expected, mut inside) = (0, false);
            for place in 0..64 {
                if inside {
                    expected |= 1 << place;
                }
                inside = !inside && backslashes >> place & 1 == 1;
            }
            assert_eq!(escaped_by(backslashes), expected, "{backslashes:#066b}");
        }
    }

    /// Blocks are passed as far as the bytes one by one would have it, and never further.
    #[test]
    fn blocks_end_where_the_string_or_its_rules_do() {
        let parts = [
            "a",
            "é",
            "0123456789",
            "\\\"",
            "\\\\",
            "\\n",
            "\\u00e9",
            "\\ud83e\\udd80",
            "\\\\\\\"",
        ];
        let ends = ["\"", "\n", "\\\n", "\\x", "\\u12g4", "\\ud83e", "\\udd80", "\\"];
        let mut random = 7u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) as usize % below
        };
        let mut whole = 0;
        for round in 0..5_000 {
            // Every second one has no other escapes than of quotes.
            let kinds = if round % 2 == 0 { 4 } else { parts.len() };
            let good: String = (0..next(60)).map(|_| parts[next(kinds)]).collect();
            // Quotes that nothing escapes and control bytes fill blocks, too.
            let end = ends[next(ends.len())];
            let behind = if end == "\\" { "x" } else { ["x", "\"", "\n"][next(3)] };
            let text = format!("{good}{end}{}", behind.repeat(next(140)));
            let reached = pass_blocks(text.as_bytes(), 0);
            assert!(reached <= good.len(), "{text}");
            assert!(good.len() - reached < 64 + 12, "{text}");
            whole += reached;
            // It stands between two parts, or within one that has no escape.
            let (mut at, mut between) = (0, false);
            while at <= reached {
                between = at == reached;
                at += match good.as_bytes().get(at) {
                    Some(b'\\') => resolve_escape(good.as_bytes(), at).unwrap().1,
                    _ => 1,
                };
            }
            assert!(between, "{text}: {reached}");
        }
        assert!(whole > 100_000, "blocks are hardly ever passed: {whole}");
    }

    /// An escaped backslash does not escape the quote behind it, wherever a block ends.
    #[test]
    fn a_quote_behind_an_escaped_backslash_ends_the_string() {
        for len in 0..200 {
            let text = format!("{}\\\\\"{}", "x".repeat(len), "\\\"".repeat(80));
            let reached = pass_blocks(text.as_bytes(), 0);
            assert!(reached <= len + 2, "{len}: {reached}");
        }
    }
}
