//! The module that calls imports as its request says.

/// Words of one record: what is done, and nine arguments.
pub const RECORD_WORDS: usize = 10;
/// Most records of one call. Longer programs find nothing more.
pub const RECORDS_MAX: usize = 24;
/// What `word 0 % OPERATIONS` chooses: the imports that answer a number, `log`, and writing a word into the memory.
const OPERATIONS: u32 = 8;

/// Where the module's own data ends, and what records point at begins.
const TEXTS: u32 = 196_608;

/// Arguments of each import, in the order of the operations.
const IMPORTS: [(&str, usize); 6] = [
    ("read_fact", 6),
    ("store_fact", 9),
    ("query_facts", 7),
    ("get_secret_decrypted", 4),
    ("emit_receipt", 6),
    ("current_passport_json", 2),
];

/// The capacity that a record gives an import, which is its last argument; none where it calls none.
pub fn capacity(record: &[u32]) -> Option<i32> {
    let (_, count) = IMPORTS.get((record[0] % OPERATIONS) as usize)?;
    Some(record[*count].cast_signed())
}

/// Whether a record lets an import write where the module keeps its program and its answer. What is read from there
/// afterwards is no longer what was asked for.
pub fn overwrites(record: &[u32]) -> bool {
    let Some((_, count)) = IMPORTS.get((record[0] % OPERATIONS) as usize) else { return false };
    record[*count - 1] < TEXTS
}

/// The module. Its memory has five pages; what its records may point at begins with these texts at 196608:
/// `notes::sum::a` (13 bytes), `text` (4), `api-key` (7), and two bytes that are no text.
pub fn bytes() -> Vec<u8> {
    // Where the digits of the program begin in the request.
    let program = r#"{"tool":"t","args":""#.len();
    let tail = r#"","calling_passport_id":"p_a","request_id":"r"}"#.len();
    let imports: String = IMPORTS
        .iter()
        .map(|(name, count)| {
            let params = " i32".repeat(*count);
            format!("(import \"crux\" \"{name}\" (func ${name} (param{params}) (result i32)))\n")
        })
        .collect();
    let word = |number: usize| format!("(call $word (i32.const {number}))");
    let words = |count: usize| (1..=count).map(word).collect::<String>();
    let cases: String = IMPORTS
        .iter()
        .enumerate()
        .map(|(operation, (name, count))| {
            format!(
                "(if (i32.eq (local.get $what) (i32.const {operation})) (then (return (call ${name} {}))))\n",
                words(*count)
            )
        })
        .collect();
    let text = format!(
        r#"(module
          {imports}
          (import "crux" "log" (func $log (param i32 i32 i32 i32)))
          (memory (export "memory") 5)
          (data (i32.const 196608) "notes::sum::atextapi-key\ff\fe")
          (global $at (mut i32) (i32.const 0))
          (func $digit (param i32) (result i32)
            (local.set 0 (i32.sub (i32.load8_u (local.get 0)) (i32.const 48)))
            (if (result i32) (i32.gt_u (local.get 0) (i32.const 9))
              (then (i32.sub (local.get 0) (i32.const 39))) (else (local.get 0))))
          ;; The word of that number in the record at $at.
          (func $word (param $number i32) (result i32) (local $from i32) (local $end i32) (local $value i32)
            (local.set $from (i32.add (global.get $at) (i32.shl (local.get $number) (i32.const 3))))
            (local.set $end (i32.add (local.get $from) (i32.const 8)))
            (loop $next
              (local.set $value
                (i32.or (i32.shl (local.get $value) (i32.const 4)) (call $digit (local.get $from))))
              (local.set $from (i32.add (local.get $from) (i32.const 1)))
              (br_if $next (i32.lt_u (local.get $from) (local.get $end))))
            (local.get $value))
          (func $hex (param $value i32) (param $to i32) (local $shift i32) (local $digit i32)
            (local.set $shift (i32.const 28))
            (loop $next
              (local.set $digit
                (i32.and (i32.shr_u (local.get $value) (local.get $shift)) (i32.const 15)))
              (i32.store8 (local.get $to) (i32.add (local.get $digit)
                (select (i32.const 87) (i32.const 48) (i32.gt_u (local.get $digit) (i32.const 9)))))
              (local.set $to (i32.add (local.get $to) (i32.const 1)))
              (local.set $shift (i32.sub (local.get $shift) (i32.const 4)))
              (br_if $next (i32.ge_s (local.get $shift) (i32.const 0)))))
          (func $do (result i32) (local $what i32)
            (local.set $what (i32.rem_u {} (i32.const {OPERATIONS})))
            {cases}
            (if (i32.eq (local.get $what) (i32.const 6)) (then (call $log {}) (return (i32.const 0))))
            ;; A word goes anywhere into the last two pages, so that any bytes can stand there.
            (i32.store
              (i32.add (i32.const 196608) (i32.rem_u {} (i32.const 131069))) {})
            (i32.const 0))
          (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32)
            (result i32) (local $end i32) (local $to i32)
            (global.set $at (i32.const {program}))
            (local.set $end (i32.sub (local.get $len) (i32.const {tail})))
            ;; `{{"result":"`, the codes, `"}}`
            (i64.store (local.get $out) (i64.const 0x746c75736572227b))
            (i32.store offset=8 (local.get $out) (i32.const 0x00223a22))
            (local.set $to (i32.add (local.get $out) (i32.const 11)))
            (loop $next
              (call $hex (call $do) (local.get $to))
              (local.set $to (i32.add (local.get $to) (i32.const 8)))
              (global.set $at (i32.add (global.get $at) (i32.const {})))
              (br_if $next (i32.lt_u (global.get $at) (local.get $end))))
            (i32.store16 (local.get $to) (i32.const 0x7d22))
            (i32.sub (i32.add (local.get $to) (i32.const 2)) (local.get $out))))"#,
        word(0),
        words(4),
        word(1),
        word(2),
        RECORD_WORDS * 8,
    );
    wat::parse_str(&text).expect("the module's text is right")
}
