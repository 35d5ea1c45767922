//! Receipts against real files.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use toolshelf_core::digest::Digest;

use super::chain::{head_path, public_key, verify};
use super::*;

fn new(action: &str) -> NewReceipt<'_> {
    NewReceipt {
        extension_id: "ext.a",
        tool: "ext.a.note",
        passport_fpr: "p_alice",
        request_id: "req-1",
        action,
        payload: "{\"a\":\"\u{7}\"}",
    }
}

fn log_of(actions: &[&str]) -> (tempfile::TempDir, ReceiptLog) {
    let dir = tempfile::tempdir().unwrap();
    let log = ReceiptLog::open(dir.path()).unwrap();
    for (at, action) in actions.iter().enumerate() {
        assert_eq!(log.append(new(action), at as u64).unwrap().body.seq, at as u64 + 1);
    }
    (dir, log)
}

fn lines(log: &ReceiptLog) -> Vec<String> {
    fs::read_to_string(&log.path).unwrap().lines().map(str::to_owned).collect()
}

fn write_lines(log: &ReceiptLog, lines: &[String]) {
    fs::write(&log.path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

#[test]
fn a_log_is_verified_with_nothing_but_its_public_key() {
    let (dir, log) = log_of(&["a", "b", "c"]);
    let key = public_key(&fs::read_to_string(dir.path().join("receipts.pub")).unwrap()).unwrap();
    let verified = verify(&log.path, &key).unwrap();
    assert_eq!((verified.receipts, verified.end_confirmed), (3, true));
    assert_eq!(verified.last, Digest::of(lines(&log)[2].as_bytes()));
    // It is written on after a restart.
    let again = ReceiptLog::open(dir.path()).unwrap();
    assert_eq!(again.append(new("d"), 9).unwrap().body.prev, verified.last);
    // The first one looks again where another has written.
    assert_eq!(log.append(new("e"), 9).unwrap().body.seq, 5);
    assert_eq!(verify(&log.path, &key).unwrap().receipts, 5);
    let newest = log.newest(2, Some("ext.a")).unwrap();
    assert_eq!(newest.iter().map(|receipt| receipt.body.action.as_str()).collect::<Vec<_>>(), ["e", "d"]);
    assert!(log.newest(2, Some("ext.b")).unwrap().is_empty());
}

#[test]
fn an_empty_log_is_whole() {
    let (_dir, log) = log_of(&[]);
    let verified = verify(&log.path, &log.public_key()).unwrap();
    assert_eq!((verified.receipts, verified.end_confirmed), (0, false));
}

#[test]
fn the_first_line_that_was_touched_is_named() {
    type Change = fn(&mut Vec<String>);
    let cases: [(&str, u64, Change); 8] = [
        ("another word", 2, |lines| lines[1] = lines[1].replace("\"b\"", "\"x\"")),
        ("another time", 1, |lines| lines[0] = lines[0].replace("\"at_unix_ms\":0", "\"at_unix_ms\":7")),
        ("left out", 2, |lines| drop(lines.remove(1))),
        ("turned round", 2, |lines| lines.swap(1, 2)),
        ("twice", 3, |lines| lines.insert(2, lines[1].clone())),
        ("white space", 3, |lines| lines[2].insert(1, ' ')),
        ("no receipt", 2, |lines| lines[1] = "{}".to_owned()),
        ("a signature of another body", 3, |lines| {
            let sig = |line: &str| line[line.find("\"sig\"").unwrap()..].to_owned();
            let (own, other) = (sig(&lines[2]), sig(&lines[1]));
            lines[2] = lines[2].replace(&own, &other);
        }),
    ];
    for (name, line, change) in cases {
        let (_dir, log) = log_of(&["a", "b", "c", "d"]);
        let mut changed = lines(&log);
        change(&mut changed);
        write_lines(&log, &changed);
        match verify(&log.path, &log.public_key()) {
            Err(ReceiptsError::Broken { line: found, .. }) => assert_eq!(found, line, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_log_that_was_cut_off_is_found_by_its_head_and_not_written_on() {
    let (dir, log) = log_of(&["a", "b", "c"]);
    let whole = lines(&log);
    write_lines(&log, &whole[..2]);
    let cut = verify(&log.path, &log.public_key()).unwrap_err();
    assert!(matches!(cut, ReceiptsError::Truncated { found: 2, expected: 3, .. }), "{cut}");
    let again = ReceiptLog::open(dir.path()).unwrap();
    assert!(matches!(again.append(new("d"), 9), Err(ReceiptsError::Truncated { .. })));
    assert_eq!(lines(&log), whole[..2]);
    // Without the head nobody can tell, and that is said.
    fs::remove_file(head_path(&log.path)).unwrap();
    let verified = verify(&log.path, &log.public_key()).unwrap();
    assert_eq!((verified.receipts, verified.end_confirmed), (2, false));
}

#[test]
fn a_head_that_was_touched_is_named() {
    let (_dir, log) = log_of(&["a", "b"]);
    let path = head_path(&log.path);
    let text = fs::read_to_string(&path).unwrap();
    for changed in [text.replace("\"seq\":2", "\"seq\":1"), "{".to_owned()] {
        fs::write(&path, changed).unwrap();
        let broken = verify(&log.path, &log.public_key());
        assert!(matches!(broken, Err(ReceiptsError::BrokenHead { .. })), "{broken:?}");
    }
}

#[test]
fn a_line_that_the_power_cut_is_written_over() {
    let (dir, log) = log_of(&["a", "b"]);
    let mut file = OpenOptions::new().append(true).open(&log.path).unwrap();
    file.write_all(b"{\"body\":{\"seq\":3,").unwrap();
    let broken = verify(&log.path, &log.public_key());
    assert!(matches!(broken, Err(ReceiptsError::Broken { line: 3, .. })), "{broken:?}");
    let again = ReceiptLog::open(dir.path()).unwrap();
    assert_eq!(again.append(new("c"), 9).unwrap().body.seq, 3);
    assert_eq!(verify(&log.path, &log.public_key()).unwrap().receipts, 3);
}

#[test]
fn a_log_with_a_damaged_end_is_not_written_on() {
    let (dir, log) = log_of(&["a", "b"]);
    let mut changed = lines(&log);
    changed[1] = changed[1].replace("\"b\"", "\"x\"");
    write_lines(&log, &changed);
    let again = ReceiptLog::open(dir.path()).unwrap();
    assert!(matches!(again.append(new("c"), 9), Err(ReceiptsError::Broken { line: 2, .. })));
    assert_eq!(lines(&log), changed);
}

#[test]
fn the_log_of_another_key_is_not_accepted() {
    let (_dir, log) = log_of(&["a"]);
    let (_other_dir, other) = log_of(&["a"]);
    fs::remove_file(head_path(&log.path)).unwrap();
    let broken = verify(&log.path, &other.public_key());
    assert!(matches!(broken, Err(ReceiptsError::Broken { line: 1, .. })), "{broken:?}");
    for text in ["", "zz", &"0".repeat(64)] {
        assert!(matches!(public_key(text), Err(ReceiptsError::NoKey)), "{text}");
    }
}

#[test]
fn what_is_too_long_is_not_put_on_record() {
    let (_dir, log) = log_of(&[]);
    let long = "x".repeat(RECEIPT_PAYLOAD_MAX_BYTES + 1);
    assert!(matches!(log.append(new(&long), 0), Err(ReceiptsError::TooLong { field: "action", .. })));
    let payload = NewReceipt { payload: &long, ..new("a") };
    assert!(matches!(log.append(payload, 0), Err(ReceiptsError::TooLong { field: "payload", .. })));
    let worst = "\u{1}".repeat(RECEIPT_PAYLOAD_MAX_BYTES);
    log.append(NewReceipt { payload: &worst, ..new("a") }, 0).unwrap();
    assert_eq!(verify(&log.path, &log.public_key()).unwrap().receipts, 1);
}

#[test]
fn receipts_of_many_threads_and_programs_make_one_chain() {
    let (dir, log) = log_of(&[]);
    let other = ReceiptLog::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for log in [&log, &other, &log, &other] {
            scope.spawn(move || (0..10).for_each(|_| drop(log.append(new("a"), 0).unwrap())));
        }
    });
    assert_eq!(verify(&log.path, &log.public_key()).unwrap().receipts, 40);
}
