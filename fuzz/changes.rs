//! What do bad transfers, bad writers and bad people do to a file?
//!
//! Changes that keep what a header is made of more or less together: words and stretches are put
//! where one thing ends and the next begins. Blind changes seldom get past the first comma. The
//! fuzz target makes them besides libFuzzer's own; `tests/corpus.rs` makes them on stable.

/// Marsaglia's xorshift: enough to be different every time, and the same on every machine.
pub struct Random(u64);

impl Random {
    /// From any seed.
    pub fn new(seed: u64) -> Random {
        // Zero would stay zero.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % limit as u64) as usize
    }

    /// One of these, of which there are some.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Makes one change.
pub fn change(file: &mut Vec<u8>, random: &mut Random, words: &[Vec<u8>]) {
    let place = random.below(file.len() + 1);
    let end = (place + 1 + random.below(16)).min(file.len());
    let [one, other, third] = [(); 3].map(|()| joint(file, b"{}[],:", random));
    let (from, to) = (one.min(other), one.max(other));
    match random.below(12) {
        0 if place < end => file[place] ^= 1 << random.below(8),
        1 if place < end => file[place] = random.below(256) as u8,
        2 => file.truncate(place),
        3 => drop(file.drain(place..end)),
        4 => {
            let digit = file[place..].iter().position(u8::is_ascii_digit);
            if let Some(digit) = digit {
                file[place + digit] = b'0' + random.below(10) as u8;
            }
        }
        5 => {
            let word = &words[random.below(words.len())];
            insert(file, one, word);
        }
        6 => drop(file.splice(from..to, words[random.below(words.len())].iter().copied())),
        7 => drop(file.drain(from..to)),
        8 => {
            let stretch = file[from..to].to_vec();
            insert(file, third, &stretch);
        }
        9 => {
            let stretch: Vec<u8> = file.drain(from..to).collect();
            let place = if third < to { third.min(from) } else { third - stretch.len() };
            insert(file, place, &stretch);
        }
        _ => {
            // A whole member, where one may stand.
            let is_member = |word: &&Vec<u8>| word.contains(&b':') && word.ends_with(b",");
            let members: Vec<&Vec<u8>> = words.iter().filter(is_member).collect();
            let (place, member) = (joint(file, b"{,", random), random.pick(&members));
            insert(file, place, member);
        }
    }
}

fn insert(file: &mut Vec<u8>, place: usize, bytes: &[u8]) {
    drop(file.splice(place..place, bytes.iter().copied()));
}

/// A place where one thing ends and the next begins: behind one of these marks, or at the end.
fn joint(file: &[u8], marks: &[u8], random: &mut Random) -> usize {
    let marked = |at: &usize| marks.contains(&file[at - 1]);
    let joints: Vec<usize> = (1..=file.len()).filter(marked).chain([file.len()]).collect();
    random.pick(&joints)
}

/// The same file with a length that covers its text up to the last brace, and with the data that
/// its offsets ask for. Most changes break the length first, and what lies behind it would seldom
/// be reached.
pub fn mended(file: &[u8]) -> Vec<u8> {
    let text = file.get(8..).unwrap_or_default();
    let brace = text.iter().rposition(|&byte| byte == b'}');
    let (text, data) = text.split_at(brace.map_or(text.len(), |last| last + 1));
    let mut mended = (text.len() as u64).to_le_bytes().to_vec();
    mended.extend(text);
    let zeros = std::iter::repeat_n(0, MOST_DATA);
    mended.extend(data.iter().copied().chain(zeros).take(data_wanted(text)));
    mended
}

/// The most data that [`mended`] adds, in bytes: offsets may ask for more than any machine has.
const MOST_DATA: usize = 1024;

/// The largest number that ends a `data_offsets`; without help from the crate, which must not fail
/// before its turn.
fn data_wanted(text: &[u8]) -> usize {
    let text = String::from_utf8_lossy(text);
    let offsets = text.split("\"data_offsets\"").skip(1);
    let end = |offsets: &str| {
        let (_, end) = offsets.split(']').next()?.rsplit_once(',')?;
        end.trim().parse().ok()
    };
    let largest = offsets.filter_map(end).max().unwrap_or(0);
    MOST_DATA.min(largest)
}

/// The words of a libFuzzer dictionary; the error is the line that holds none.
pub fn dictionary(text: &str) -> Result<Vec<Vec<u8>>, &str> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| word(line).ok_or(line)).collect()
}

/// A quoted word with `\\`, `\"` and `\xNN`, as libFuzzer reads it.
fn word(line: &str) -> Option<Vec<u8>> {
    let mut characters = line.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut word = Vec::new();
    while let Some(character) = characters.next() {
        word.push(match character {
            '\\' => match characters.next()? {
                'x' => {
                    let mut digit = || characters.next()?.to_digit(16);
                    (digit()? * 16 + digit()?) as u8
                }
                escaped @ ('\\' | '"') => escaped as u8,
                _ => return None,
            },
            plain @ (' ' | '!' | '#'..='~') => plain as u8,
            _ => return None,
        });
    }
    Some(word)
}
