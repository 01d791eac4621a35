//! Which name did they mean?
//!
//! A look-up fails mostly by a slip: `layer.0` for `layers.0`, a prefix forgotten. The nearest name
//! is the one that takes the fewest inserted, removed or replaced bytes to reach (Levenshtein). The
//! work is bounded, so that a miss among a million names costs milliseconds and not minutes.

/// The name nearest to `wanted`, if one is near at all: about a third of the bytes differ at most, or
/// one of the two is the beginning or the end of the other and at least half of it.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut budget = 4_000_000;
    let mut row = Vec::new();
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let longer = wanted.len().max(name.len());
        let near = match best {
            Some((distance, _)) => distance,
            None => longer,
        };
        if wanted.len().abs_diff(name.len()) >= near {
            continue;
        }
        let distance = distance(wanted.as_bytes(), name.as_bytes(), &mut row, &mut budget);
        let is_part = is_part_of(wanted, name) || is_part_of(name, wanted);
        if distance < near && (distance <= longer.div_ceil(3) || is_part) {
            best = Some((distance, name));
        }
        if budget == 0 {
            break;
        }
    }
    best.map(|(_, name)| name)
}

fn is_part_of(part: &str, whole: &str) -> bool {
    part.len() * 2 >= whole.len() && (whole.starts_with(part) || whole.ends_with(part))
}

/// The distance, as far as the budget of compared pairs reaches; beyond that, the worst.
fn distance(one: &[u8], other: &[u8], row: &mut Vec<usize>, budget: &mut usize) -> usize {
    // What both begin and end with costs nothing, and that is nearly everything in practice.
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let start = one.iter().zip(other).take_while(same).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    if one.is_empty() || other.is_empty() {
        return one.len() + other.len();
    }
    match budget.checked_sub(one.len().saturating_mul(other.len())) {
        Some(left) => *budget = left,
        None => {
            *budget = 0;
            return usize::MAX;
        }
    }
    // row[j]: the distance between what was seen of `one` and the first j bytes of `other`.
    row.clear();
    row.extend(0..=other.len());
    for (i, byte) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, wanted) in other.iter().enumerate() {
            let replace = diagonal + usize::from(byte != wanted);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised() {
        let names = ["model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "lm_head"];
        for (wanted, name) in [
            ("model.embed_token.weight", Some("model.embed_tokens.weight")),
            ("embed_tokens.weight", Some("model.embed_tokens.weight")),
            ("model.layers.0.mlp.up_proj.bias", Some("model.layers.0.mlp.up_proj.weight")),
            ("model.layer.0.mlp.up_proj.weight", Some("model.layers.0.mlp.up_proj.weight")),
            ("LM_head", Some("lm_head")),
            ("lm_head.weight", Some("lm_head")),
            ("something else altogether", None),
            ("", None),
            ("transformer.d", None),
        ] {
            assert_eq!(nearest(wanted, names.into_iter()), name, "{wanted}");
        }
        assert_eq!(nearest("a", std::iter::empty()), None);
    }

    #[test]
    fn the_distance_is_levenshtein_s() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("saturday", "sunday", 3),
            ("ab", "ba", 2),
            ("aaa", "aa", 1),
        ] {
            let mut budget = 1000;
            let found = distance(one.as_bytes(), other.as_bytes(), &mut Vec::new(), &mut budget);
            assert_eq!(found, expected, "{one} {other}");
        }
    }

    #[test]
    fn long_names_exhaust_the_budget_and_not_the_patience() {
        let (wanted, other) = ("a".repeat(1_000_000), "b".repeat(1_000_000));
        assert_eq!(nearest(&wanted, std::iter::repeat_n(other.as_str(), 1_000_000)), None);
    }
}
