//! Is this text XML at all?

/// Whether a text is well-formed XML 1.0 of the plain kind: elements, attributes in double quotes,
/// and the four entities.
pub fn whole(text: &str) -> Result<(), String> {
    let allowed = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        other => other >= ' ' && other != '\u{fffe}' && other != '\u{ffff}',
    };
    if let Some(forbidden) = text.chars().find(|&c| !allowed(c)) {
        return Err(format!("{forbidden:?} is forbidden"));
    }
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
        if !known.iter().any(|entity| text[at..].starts_with(entity)) {
            return Err(format!("an entity that is none at {at}"));
        }
    }
    let mut open = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        let Some((words, tail)) = rest.split_once('<') else {
            return Err(format!("text behind the end: {rest:?}"));
        };
        if words.contains('>') || (open.is_empty() && !words.is_empty()) {
            return Err(format!("text that is a tag, or in no element: {words:?}"));
        }
        let Some((tag, tail)) = tail.split_once('>') else {
            return Err(format!("a tag without end: {tail:?}"));
        };
        rest = tail;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> ends nothing"));
            }
            continue;
        }
        let (tag, is_leaf) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let mut parts = tag.split('"');
        let name = parts.next().and_then(|name| name.split(' ').next()).unwrap_or_default();
        if tag.matches('"').count() % 2 != 0 || name.is_empty() {
            return Err(format!("no tag: <{tag}>"));
        }
        if !is_leaf {
            open.push(name);
        } else if open.is_empty() {
            return Err("a second root".to_owned());
        }
        if open.is_empty() && !rest.is_empty() {
            return Err("more than one root".to_owned());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} is open")) }
}

#[test]
fn the_check_of_xml_finds_what_is_wrong() {
    assert_eq!(whole("<a b=\"&lt;c&gt;\"><d/>]]&gt;<e>f</e></a>\n"), Ok(()));
    for broken in
        ["<a>", "<a></b>", "<a>\0</a>", "<a>&b;</a>", "<a>]]></a>", "<a b=\"></a>", "<a></a>b", "a"]
    {
        assert!(whole(broken).is_err(), "{broken:?}");
    }
}
