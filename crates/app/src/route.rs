//! The part of the address behind `#`: `#/extensions`, `#/extensions/<id>`, and `#/extensions/<id>/in/<shelf>` for an
//! entry whose id another shelf has as well.

/// The address of the panel.
pub(crate) const PANEL: &str = "#/extensions";

/// What the address names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Route {
    /// Id of the tool that is looked at.
    pub(crate) tool: Option<String>,
    /// Key of the shelf, where the id alone would name another one's tool.
    pub(crate) shelf: Option<String>,
}

/// Reads the part of an address that starts with `#`. What is not understood names the panel.
pub(crate) fn parse(hash: &str) -> Route {
    let mut parts = hash.strip_prefix(PANEL).unwrap_or_default().split('/').skip(1);
    let tool = parts.next().map(decode).filter(|id| !id.is_empty());
    let shelf = parts.next().filter(|word| *word == "in").and_then(|_| parts.next()).map(decode);
    Route { shelf: shelf.filter(|_| tool.is_some()), tool }
}

/// The address of a tool.
pub(crate) fn to_tool(id: &str, shelf: Option<&str>) -> String {
    let mut hash = String::from(PANEL);
    hash.push('/');
    encode(id, &mut hash);
    if let Some(shelf) = shelf {
        hash.push_str("/in/");
        encode(shelf, &mut hash);
    }
    hash
}

fn encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&digit| char::from(digit).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_as_it_was_written() {
        for (id, shelf) in
            [("hash", None), ("(unnamed)", Some("a b/é%")), ("x/in/y", None), ("%41", Some("s"))]
        {
            let route = parse(&to_tool(id, shelf));
            assert_eq!((route.tool.as_deref(), route.shelf.as_deref()), (Some(id), shelf));
        }
        assert_eq!(to_tool("hash", None), "#/extensions/hash");
    }

    #[test]
    fn what_is_not_understood_names_the_panel() {
        for hash in ["", "#", "#/", "#/elsewhere/hash", "#/extensions", "#/extensions/"] {
            assert_eq!(parse(hash), Route::default(), "{hash}");
        }
        assert_eq!(parse("#/extensions/%zz%").tool.as_deref(), Some("%zz%"));
    }
}
