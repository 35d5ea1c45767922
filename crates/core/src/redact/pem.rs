//! Blocks of private keys, from their first line to their last.

use super::REDACTED;

const BEGIN: &str = "---- BEGIN ";
const BEGIN_PEM: &str = "-----BEGIN ";
const END: &str = "END ";
/// What a label or the rest of a last line may be long.
const LABEL_MAX: usize = 64;

/// Replaces each block, whose END may be missing: then it runs to the end of the text.
pub(super) fn scrub(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(dashes) = text[from..].find("----").map(|at| at + from) {
        let head = &text[dashes..];
        let Some(body) = body(head) else {
            from = dashes + 1;
            continue;
        };
        out.push_str(&text[copied..dashes]);
        out.push_str(REDACTED);
        copied = dashes + end(head, body);
        from = copied;
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Where the body begins, when `head` begins with the first line of a private key.
fn body(head: &str) -> Option<usize> {
    let label = head.strip_prefix(BEGIN_PEM).or_else(|| head.strip_prefix(BEGIN))?;
    let dash = label.bytes().take(LABEL_MAX).position(|byte| byte == b'-')?;
    (label[..dash].contains("PRIVATE KEY") && label[dash..].starts_with("----"))
        .then(|| head.len() - label.len() + dash)
}

/// Where the block ends.
fn end(head: &str, body: usize) -> usize {
    let mut from = body;
    while let Some(at) = head[from..].find(END).map(|at| at + from) {
        from = at + END.len();
        if head[..at].ends_with("-----") || head[..at].ends_with("---- ") {
            let bytes = &head.as_bytes()[from..];
            let label = bytes.iter().take(LABEL_MAX).position(|&byte| byte == b'-').unwrap_or(0);
            return from + label + bytes[label..].iter().take(5).take_while(|&&byte| byte == b'-').count();
        }
    }
    head.len()
}
