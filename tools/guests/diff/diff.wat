;; A line diff with the fewest possible edits, as a shelf tool of the ABI `buffer-abi/diff`.
;;
;; The host writes text A at 0x10000 and text B at 0x20000, calls `diff(lengthA, lengthB)` and reads the edit script
;; at 0x30000. The return value is the script's length in bytes, or -1 for a length that is out of range.
;; The module imports nothing and its memory cannot grow.
;;
;; LINES. A line is its bytes up to and including LF, so CR belongs to the line, a last line without LF differs from
;; the same text with one, and a LF at the end does not begin another line. An empty text has no lines.
;;
;; SCRIPT. Blocks of 17 bytes, little-endian: u8 op, u32 aLine, u32 aCount, u32 bLine, u32 bCount; then the byte 255.
;; Lines count from 0. Op 0 is equal, 1 is delete (bLine = bCount = 0), 2 is insert (aLine = aCount = 0).
;; Neighbouring blocks never have the same op, and where lines are replaced the delete comes before the insert.
;;
;; HOW. Every line becomes a number, equal lines the same one, through a trie of the bytes of both texts: no hash, so no
;; text can be built to collide. Hirschberg's recursion then halves A, and finds where B has to be cut, from one row of
;; the table of longest common subsequences (LCS) for the upper half of A and one for the lower half turned over. A row
;; is kept as a vector of bits, 64 cells to a word, and moved on by one line of A with an addition (Hyyro, 2004):
;;
;;     V = (V + (V & M)) | (V & ~M)        M: which lines of B equal this line of A
;;
;; where the zeros among the first j bits of V count the LCS with the first j lines of B. So the time is at most in
;; the order of linesA * linesB / 64 and the space is linear, whatever the texts.
;;
;; TIDY. Of the many scripts of the same length the one found is slid into a more readable one: edits that can touch do
;; so, and edits of A stand next to edits of B where they can.
;;
;; TOO LONG. The output holds 15,420 blocks. A shortest script that needs more (A = "x\nc\n" * 16384, B = "c\n" * 16384)
;; is made to fit by giving up equal lines: the runs of a single line that lie between two edits, from the top, then
;; those of two lines, and so on, only until the rest fits. What comes out turns A into B all the same.
;;
;; Memory:
;;
;;   0x010000   64 KiB  text A
;;   0x020000   64 KiB  text B
;;   0x030000  256 KiB  script
;;   0x070000  256 KiB  the lines of A, a class (u32) each
;;   0x0b0000  256 KiB  the lines of B, the same
;;   0x0f0000   64 KiB  which lines of A are edits, that is deleted (u8)
;;   0x100000   64 KiB  which lines of B are edits, that is inserted (u8)
;;   0x110000  128 KiB  where the other text has edits (u8, after how many kept lines; 65,537 of them)
;;   0x130000    8 KiB  row of the upper half
;;   0x132000    8 KiB  row of the lower half
;;   0x140000  512 KiB  masks of frequent lines
;;   0x1c0000    1 MiB  classes: u32 size, u32 place, for 131,073 of them
;;   0x2d0000    2 MiB  trie: u32 first child, u32 next sibling, u32 class, u32 byte, for 131,073 nodes;
;;                      once the lines are read, lists of rare lines: u64 mask, u32 word, for 65,536 words
;;
;; Lines of A and of B lie at the same distance as their edit flags do, four to one, so that one formula leads from the
;; address of any line to its flag. Lines are handled by address up to the tidying and by number after it.

(module
  (memory (export "memory") 78 78)

  (global $count_a (mut i32) (i32.const 0))
  (global $count_b (mut i32) (i32.const 0))

  (func (export "diff") (param $len_a i32) (param $len_b i32) (result i32)
    ;; The comparison is unsigned, so it also turns away negative lengths.
    (if (i32.or (i32.gt_u (local.get $len_a) (i32.const 65536)) (i32.gt_u (local.get $len_b) (i32.const 65536)))
      (then (return (i32.const -1))))

    (call $forget)
    (global.set $count_a (call $read (i32.const 0x10000) (local.get $len_a) (i32.const 0x70000)))
    (global.set $count_b (call $read (i32.const 0x20000) (local.get $len_b) (i32.const 0xb0000)))
    (call $solve
      (i32.const 0x70000) (i32.add (i32.const 0x70000) (i32.shl (global.get $count_a) (i32.const 2)))
      (i32.const 0xb0000) (i32.add (i32.const 0xb0000) (i32.shl (global.get $count_b) (i32.const 2))))
    (call $tidy)
    (call $write_to_fit))

  ;; ---------------------------------------------------------------------------------------------------------------
  ;; Lines to numbers
  ;; ---------------------------------------------------------------------------------------------------------------

  (global $next_node (mut i32) (i32.const 0))
  (global $next_class (mut i32) (i32.const 0))

  ;; Makes the module ready for another call: a trie with nothing but its root, no class, no edit.
  (func $forget
    (memory.fill (i32.const 0x2d0000) (i32.const 0) (i32.const 16))
    (global.set $next_node (i32.const 0x2d0010))
    (global.set $next_class (i32.const 1))
    (memory.fill (i32.const 0xf0000) (i32.const 0) (i32.const 0x20000)))

  ;; Stores the class of every line of a text from $to on, and returns how many lines there are.
  (func $read (param $text i32) (param $len i32) (param $to i32) (result i32)
    (local $end i32) (local $node i32) (local $byte i32) (local $first i32)
    (local.set $first (local.get $to))
    (local.set $end (i32.add (local.get $text) (local.get $len)))
    (local.set $node (i32.const 0x2d0000))
    (block $done
      (loop $bytes
        (br_if $done (i32.eq (local.get $text) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $text)))
        (local.set $text (i32.add (local.get $text) (i32.const 1)))
        (local.set $node (call $child (local.get $node) (local.get $byte)))
        (if (i32.or (i32.eq (local.get $byte) (i32.const 10)) (i32.eq (local.get $text) (local.get $end)))
          (then
            (i32.store (local.get $to) (call $class (local.get $node)))
            (local.set $to (i32.add (local.get $to) (i32.const 4)))
            (local.set $node (i32.const 0x2d0000))))
        (br $bytes)))
    (i32.shr_u (i32.sub (local.get $to) (local.get $first)) (i32.const 2)))

  ;; The child of a trie node for a byte, added in front of its siblings if need be. A node has at most 256 of them.
  (func $child (param $node i32) (param $byte i32) (result i32)
    (local $child i32)
    (local.set $child (i32.load (local.get $node)))
    (block $missing
      (loop $siblings
        (br_if $missing (i32.eqz (local.get $child)))
        (if (i32.eq (i32.load offset=12 (local.get $child)) (local.get $byte))
          (then (return (local.get $child))))
        (local.set $child (i32.load offset=4 (local.get $child)))
        (br $siblings)))
    (local.set $child (global.get $next_node))
    (global.set $next_node (i32.add (local.get $child) (i32.const 16)))
    (i32.store offset=0 (local.get $child) (i32.const 0))
    (i32.store offset=4 (local.get $child) (i32.load (local.get $node)))
    (i32.store offset=8 (local.get $child) (i32.const 0))
    (i32.store offset=12 (local.get $child) (local.get $byte))
    (i32.store (local.get $node) (local.get $child))
    (local.get $child))

  ;; The class of the line that ends at a trie node. Classes are numbered from 1, for 0 is a node where none has ended.
  (func $class (param $node i32) (result i32)
    (if (i32.eqz (i32.load offset=8 (local.get $node)))
      (then
        (i32.store offset=8 (local.get $node) (global.get $next_class))
        (global.set $next_class (i32.add (global.get $next_class) (i32.const 1)))))
    (i32.load offset=8 (local.get $node)))

  ;; ---------------------------------------------------------------------------------------------------------------
  ;; Hirschberg's recursion
  ;; ---------------------------------------------------------------------------------------------------------------

  ;; Marks the fewest edits that turn the lines [$a, $a_end) into [$b, $b_end). A is halved each time, so this goes no
  ;; more than 17 calls deep.
  (func $solve (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32)
    (local $mid i32) (local $cut i32) (local $common i32)

    ;; A common beginning or end belongs to some shortest script.
    (local.set $common (call $prefix (local.get $a) (local.get $a_end) (local.get $b) (local.get $b_end)))
    (local.set $a (i32.add (local.get $a) (local.get $common)))
    (local.set $b (i32.add (local.get $b) (local.get $common)))
    (local.set $common (call $suffix (local.get $a) (local.get $a_end) (local.get $b) (local.get $b_end)))
    (local.set $a_end (i32.sub (local.get $a_end) (local.get $common)))
    (local.set $b_end (i32.sub (local.get $b_end) (local.get $common)))

    (if (i32.or (i32.eq (local.get $a) (local.get $a_end)) (i32.eq (local.get $b) (local.get $b_end)))
      (then
        (call $mark (local.get $a) (local.get $a_end))
        (call $mark (local.get $b) (local.get $b_end))
        (return)))

    (local.set $mid (i32.add (local.get $a) (i32.const 4)))
    (if (i32.eq (local.get $mid) (local.get $a_end))
      (then
        (call $solve_line (local.get $a) (local.get $b) (local.get $b_end))
        (return)))

    (local.set $mid
      (i32.add (local.get $a)
        (i32.and (i32.shr_u (i32.sub (local.get $a_end) (local.get $a)) (i32.const 1)) (i32.const -4))))
    (local.set $cut
      (call $cut (local.get $a) (local.get $mid) (local.get $a_end) (local.get $b) (local.get $b_end)))
    (call $solve (local.get $a) (local.get $mid) (local.get $b) (local.get $cut))
    (call $solve (local.get $mid) (local.get $a_end) (local.get $cut) (local.get $b_end)))

  ;; The same for a single line of A: it is kept if B has one like it.
  (func $solve_line (param $a i32) (param $b i32) (param $b_end i32)
    (local $at i32)
    (local.set $at (local.get $b))
    (loop $lines
      (if (i32.eq (i32.load (local.get $at)) (i32.load (local.get $a)))
        (then
          (call $mark (local.get $b) (local.get $at))
          (call $mark (i32.add (local.get $at) (i32.const 4)) (local.get $b_end))
          (return)))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $lines (i32.lt_u (local.get $at) (local.get $b_end))))
    (call $mark (local.get $a) (i32.add (local.get $a) (i32.const 4)))
    (call $mark (local.get $b) (local.get $b_end)))

  ;; How far (in bytes) two ranges of lines agree from their beginnings on.
  (func $prefix (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32) (result i32)
    (local $from i32)
    (local.set $from (local.get $a))
    (block $done
      (loop $lines
        (br_if $done (i32.eq (local.get $a) (local.get $a_end)))
        (br_if $done (i32.eq (local.get $b) (local.get $b_end)))
        (br_if $done (i32.ne (i32.load (local.get $a)) (i32.load (local.get $b))))
        (local.set $a (i32.add (local.get $a) (i32.const 4)))
        (local.set $b (i32.add (local.get $b) (i32.const 4)))
        (br $lines)))
    (i32.sub (local.get $a) (local.get $from)))

  ;; How far (in bytes) two ranges of lines agree from their ends back.
  (func $suffix (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32) (result i32)
    (local $from i32)
    (local.set $from (local.get $a_end))
    (block $done
      (loop $lines
        (br_if $done (i32.eq (local.get $a) (local.get $a_end)))
        (br_if $done (i32.eq (local.get $b) (local.get $b_end)))
        (local.set $a_end (i32.sub (local.get $a_end) (i32.const 4)))
        (local.set $b_end (i32.sub (local.get $b_end) (i32.const 4)))
        (br_if $lines (i32.eq (i32.load (local.get $a_end)) (i32.load (local.get $b_end))))
        ;; That pair differed and does not count.
        (local.set $a_end (i32.add (local.get $a_end) (i32.const 4)))))
    (i32.sub (local.get $from) (local.get $a_end)))

  ;; Makes the lines [$from, $to) edits, be they of A or of B.
  (func $mark (param $from i32) (param $to i32)
    (memory.fill
      (i32.add (i32.const 0xf0000) (i32.shr_u (i32.sub (local.get $from) (i32.const 0x70000)) (i32.const 2)))
      (i32.const 1)
      (i32.shr_u (i32.sub (local.get $to) (local.get $from)) (i32.const 2))))

  ;; Where to cut B so that the LCS of both upper parts and the LCS of both lower parts are longest taken together.
  (func $cut (param $a i32) (param $mid i32) (param $a_end i32) (param $b i32) (param $b_end i32) (result i32)
    (local $lines i32) (local $upper i32) (local $lower i32) (local $score i32) (local $best i32) (local $cut i32)
    (local.set $lines (i32.shr_u (i32.sub (local.get $b_end) (local.get $b)) (i32.const 2)))
    (call $row (i32.const 0x130000)
      (local.get $a) (local.get $mid) (local.get $b) (local.get $lines) (i32.const 4))
    (call $row (i32.const 0x132000)
      (i32.sub (local.get $a_end) (i32.const 4)) (i32.sub (local.get $mid) (i32.const 4))
      (i32.sub (local.get $b_end) (i32.const 4)) (local.get $lines) (i32.const -4))

    ;; Each line that moves from the lower part to the upper one adds a zero of the one row and takes away a zero of
    ;; the other. Only the differences matter, so the score may begin at 0.
    (local.set $lower (local.get $lines))
    (loop $moves
      (local.set $lower (i32.sub (local.get $lower) (i32.const 1)))
      (local.set $score
        (i32.sub
          (i32.add (local.get $score) (call $bit (i32.const 0x132000) (local.get $lower)))
          (call $bit (i32.const 0x130000) (local.get $upper))))
      (local.set $upper (i32.add (local.get $upper) (i32.const 1)))
      (if (i32.gt_s (local.get $score) (local.get $best))
        (then
          (local.set $best (local.get $score))
          (local.set $cut (local.get $upper))))
      (br_if $moves (local.get $lower)))
    (i32.add (local.get $b) (i32.shl (local.get $cut) (i32.const 2))))

  (func $bit (param $row i32) (param $index i32) (result i32)
    (i32.and
      (i32.shr_u
        (i32.load8_u (i32.add (local.get $row) (i32.shr_u (local.get $index) (i32.const 3))))
        (i32.and (local.get $index) (i32.const 7)))
      (i32.const 1)))

  ;; ---------------------------------------------------------------------------------------------------------------
  ;; Rows of the LCS table, 64 cells at a time
  ;; ---------------------------------------------------------------------------------------------------------------

  ;; Words of a row, as long as it is being computed.
  (global $words (mut i32) (i32.const 0))

  ;; Computes at $row the last row of the LCS table of the lines of A from $a up to (without) $a_stop against $lines
  ;; lines of B from $b on. The $step is 4, or -4 to go through both from their ends back.
  (func $row (param $row i32) (param $a i32) (param $a_stop i32) (param $b i32) (param $lines i32) (param $step i32)
    (local $class i32) (local $size i32) (local $place i32)
    (global.set $words (i32.shr_u (i32.add (local.get $lines) (i32.const 63)) (i32.const 6)))
    (memory.fill (local.get $row) (i32.const 255) (i32.shl (global.get $words) (i32.const 3)))
    (call $count (local.get $b) (local.get $lines) (local.get $step))
    (call $index (local.get $b) (local.get $lines) (local.get $step))
    (loop $lines_of_a
      (local.set $class (call $record (local.get $a)))
      (local.set $size (i32.load (local.get $class)))
      (local.set $place (i32.load offset=4 (local.get $class)))
      (if (i32.ge_u (local.get $size) (global.get $words))
        (then (call $advance_by_mask (local.get $row) (local.get $place)))
        (else
          ;; A line that B does not have leaves the row as it is.
          (if (local.get $size)
            (then
              (call $advance_by_list (local.get $row)
                (i32.sub (local.get $place) (i32.shl (local.get $size) (i32.const 4)))
                (local.get $place))))))
      (local.set $a (i32.add (local.get $a) (local.get $step)))
      (br_if $lines_of_a (i32.ne (local.get $a) (local.get $a_stop))))
    (call $uncount (local.get $b) (local.get $lines) (local.get $step)))

  ;; The record of the class of the line at $line.
  (func $record (param $line i32) (result i32)
    (i32.add (i32.const 0x1c0000) (i32.shl (i32.load (local.get $line)) (i32.const 3))))

  ;; Gives every class the number of its lines in this range of B. Outside of $row all are zero.
  (func $count (param $b i32) (param $lines i32) (param $step i32)
    (local $class i32)
    (loop $next
      (local.set $class (call $record (local.get $b)))
      (i32.store (local.get $class) (i32.add (i32.load (local.get $class)) (i32.const 1)))
      (local.set $b (i32.add (local.get $b) (local.get $step)))
      (br_if $next (local.tee $lines (i32.sub (local.get $lines) (i32.const 1))))))

  (func $uncount (param $b i32) (param $lines i32) (param $step i32)
    (loop $next
      (i64.store (call $record (local.get $b)) (i64.const 0))
      (local.set $b (i32.add (local.get $b) (local.get $step)))
      (br_if $next (local.tee $lines (i32.sub (local.get $lines) (i32.const 1))))))

  ;; Notes for every class where its lines are. A class with at least as many lines as a row has words gets a mask of
  ;; the whole row; there are at most 64 such classes, so that the masks take no more than 64 bits for each line of B.
  ;; Any other class gets a list of the words where it has lines, which lies right below its place, and whose length
  ;; replaces its size. So a line of A costs at most a step for each word of the row, and the space stays linear.
  (func $index (param $b i32) (param $lines i32) (param $step i32)
    (local $class i32) (local $line i32) (local $next_mask i32) (local $next_list i32) (local $size i32)
    (local.set $next_mask (i32.const 0x140000))
    (local.set $next_list (i32.const 0x2d0000))
    (loop $next
      (local.set $class (call $record (local.get $b)))
      (local.set $size (i32.load (local.get $class)))
      (if (i32.ge_u (local.get $size) (global.get $words))
        (then
          (if (i32.eqz (i32.load offset=4 (local.get $class)))
            (then
              (i32.store offset=4 (local.get $class) (local.get $next_mask))
              (memory.fill (local.get $next_mask) (i32.const 0) (i32.shl (global.get $words) (i32.const 3)))
              (local.set $next_mask
                (i32.add (local.get $next_mask) (i32.shl (global.get $words) (i32.const 3))))))
          (call $set_bit (i32.load offset=4 (local.get $class)) (local.get $line)))
        (else
          (if (i32.eqz (i32.load offset=4 (local.get $class)))
            (then
              (i32.store offset=0 (local.get $class) (i32.const 0))
              (i32.store offset=4 (local.get $class) (local.get $next_list))
              (local.set $next_list (i32.add (local.get $next_list) (i32.shl (local.get $size) (i32.const 4))))))
          (call $append (local.get $class) (local.get $line))))
      (local.set $b (i32.add (local.get $b) (local.get $step)))
      (local.set $line (i32.add (local.get $line) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $line) (local.get $lines)))))

  ;; Adds a line to the list of a rare class: to its last word if that is the one, or else to a new one.
  (func $append (param $class i32) (param $line i32)
    (local $place i32) (local $word i32)
    (local.set $place (i32.load offset=4 (local.get $class)))
    (local.set $word (i32.and (i32.shr_u (local.get $line) (i32.const 3)) (i32.const -8)))
    (if (i32.and
          (i32.ne (i32.load (local.get $class)) (i32.const 0))
          (i32.eq (i32.load (i32.sub (local.get $place) (i32.const 8))) (local.get $word)))
      (then (local.set $place (i32.sub (local.get $place) (i32.const 16))))
      (else
        (i64.store offset=0 (local.get $place) (i64.const 0))
        (i32.store offset=8 (local.get $place) (local.get $word))
        (i32.store offset=0 (local.get $class) (i32.add (i32.load (local.get $class)) (i32.const 1)))
        (i32.store offset=4 (local.get $class) (i32.add (local.get $place) (i32.const 16)))))
    (call $set_bit (local.get $place) (i32.and (local.get $line) (i32.const 63))))

  (func $set_bit (param $mask i32) (param $index i32)
    (local $at i32)
    (local.set $at (i32.add (local.get $mask) (i32.shr_u (local.get $index) (i32.const 3))))
    (i32.store8 (local.get $at)
      (i32.or
        (i32.load8_u (local.get $at))
        (i32.shl (i32.const 1) (i32.and (local.get $index) (i32.const 7))))))

  ;; Moves a row on by a line of A that equals the lines of B in the mask. This is where the time of a hard case goes,
  ;; hence the body of $advance_word written out once more.
  (func $advance_by_mask (param $row i32) (param $mask i32)
    (local $end i32) (local $old i64) (local $hit i64) (local $new i64) (local $carry i64)
    (local.set $end (i32.add (local.get $row) (i32.shl (global.get $words) (i32.const 3))))
    (loop $next
      (local.set $old (i64.load (local.get $row)))
      (local.set $hit (i64.and (local.get $old) (i64.load (local.get $mask))))
      (local.set $new (i64.add (i64.add (local.get $old) (local.get $hit)) (local.get $carry)))
      (local.set $carry
        (i64.shr_u
          (i64.or (local.get $hit) (i64.and (local.get $old) (i64.xor (local.get $new) (i64.const -1))))
          (i64.const 63)))
      (i64.store (local.get $row) (i64.or (local.get $new) (i64.xor (local.get $old) (local.get $hit))))
      (local.set $mask (i32.add (local.get $mask) (i32.const 8)))
      (br_if $next (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 8))) (local.get $end)))))

  ;; The same by a line whose class has a list. A word without any of its lines changes only when a carry reaches it, so
  ;; all others are passed over.
  (func $advance_by_list (param $row i32) (param $list i32) (param $list_end i32)
    (local $word i32) (local $stop i32) (local $carry i64)
    (loop $next
      (local.set $word (i32.add (local.get $row) (i32.load offset=8 (local.get $list))))
      (local.set $carry (call $advance_word (local.get $word) (i64.load (local.get $list)) (local.get $carry)))
      (local.set $list (i32.add (local.get $list) (i32.const 16)))
      (local.set $stop
        (i32.add (local.get $row)
          (select
            (i32.load offset=8 (local.get $list))
            (i32.shl (global.get $words) (i32.const 3))
            (i32.lt_u (local.get $list) (local.get $list_end)))))
      (block $carried
        (loop $carry_on
          (br_if $carried (i64.eqz (local.get $carry)))
          (local.set $word (i32.add (local.get $word) (i32.const 8)))
          (br_if $carried (i32.eq (local.get $word) (local.get $stop)))
          (local.set $carry (call $advance_word (local.get $word) (i64.const 0) (local.get $carry)))
          (br $carry_on)))
      (br_if $next (i32.lt_u (local.get $list) (local.get $list_end)))))

  ;; Moves one word of a row on, and returns what it carries into the next. The addition carries out of its top bit if
  ;; both summands have that bit, or one of them has it and the sum has not; and $hit has no bit that $old has not.
  (func $advance_word (param $word i32) (param $mask i64) (param $carry i64) (result i64)
    (local $old i64) (local $hit i64) (local $new i64)
    (local.set $old (i64.load (local.get $word)))
    (local.set $hit (i64.and (local.get $old) (local.get $mask)))
    (local.set $new (i64.add (i64.add (local.get $old) (local.get $hit)) (local.get $carry)))
    (i64.store (local.get $word) (i64.or (local.get $new) (i64.xor (local.get $old) (local.get $hit))))
    (i64.shr_u
      (i64.or (local.get $hit) (i64.and (local.get $old) (i64.xor (local.get $new) (i64.const -1))))
      (i64.const 63)))

  ;; ---------------------------------------------------------------------------------------------------------------
  ;; Tidying
  ;;
  ;; A group of neighbouring edits may slide by a line, down if its first line equals the line after it, up if its last
  ;; line equals the line before it. The kept lines of the text still read the same, so the script stays valid, and as
  ;; short. A group that meets another one on its way takes it in.
  ;; ---------------------------------------------------------------------------------------------------------------

  ;; The text whose groups are being slid, its group at work [$start, $end), and the number of kept lines above that.
  (global $lines (mut i32) (i32.const 0))
  (global $edits (mut i32) (i32.const 0))
  (global $count (mut i32) (i32.const 0))
  (global $start (mut i32) (i32.const 0))
  (global $end (mut i32) (i32.const 0))
  (global $kept (mut i32) (i32.const 0))

  ;; How many slides are left. A text made to need endless ones gets a less tidy script, not a late one.
  (global $slides (mut i32) (i32.const 0))

  (func $tidy
    (global.set $slides (i32.const 0x400000))
    (call $find_gaps (i32.const 0x100000) (global.get $count_b))
    (call $slide_all (i32.const 0x70000) (i32.const 0xf0000) (global.get $count_a))
    (call $find_gaps (i32.const 0xf0000) (global.get $count_a))
    (call $slide_all (i32.const 0xb0000) (i32.const 0x100000) (global.get $count_b)))

  ;; Notes after how many kept lines a text has edits. Both texts keep the same lines, so this holds for the other one.
  (func $find_gaps (param $edits i32) (param $count i32)
    (local $gap i32) (local $end i32)
    (memory.fill (i32.const 0x110000) (i32.const 0) (i32.const 0x10001))
    (local.set $gap (i32.const 0x110000))
    (local.set $end (i32.add (local.get $edits) (local.get $count)))
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $edits) (local.get $end)))
        (if (i32.load8_u (local.get $edits))
          (then (i32.store8 (local.get $gap) (i32.const 1)))
          (else (local.set $gap (i32.add (local.get $gap) (i32.const 1)))))
        (local.set $edits (i32.add (local.get $edits) (i32.const 1)))
        (br $next))))

  (func $slide_all (param $lines i32) (param $edits i32) (param $count i32)
    (global.set $lines (local.get $lines))
    (global.set $edits (local.get $edits))
    (global.set $count (local.get $count))
    (global.set $end (i32.const 0))
    (global.set $kept (i32.const 0))
    (block $done
      (loop $groups
        (global.set $start (call $skip (global.get $edits) (global.get $end) (global.get $count) (i32.const 0)))
        (br_if $done (i32.eq (global.get $start) (global.get $count)))
        (global.set $kept (i32.add (global.get $kept) (i32.sub (global.get $start) (global.get $end))))
        (global.set $end (call $skip (global.get $edits) (global.get $start) (global.get $count) (i32.const 1)))
        (call $slide_group)
        (br $groups))))

  ;; The number of the first line from $line on whose flag is not $flag.
  (func $skip (param $edits i32) (param $line i32) (param $count i32) (param $flag i32) (result i32)
    (block $done
      (loop $next
        (br_if $done (i32.eq (local.get $line) (local.get $count)))
        (br_if $done (i32.ne (i32.load8_u (i32.add (local.get $edits) (local.get $line))) (local.get $flag)))
        (local.set $line (i32.add (local.get $line) (i32.const 1)))
        (br $next)))
    (local.get $line))

  ;; Slides a group up and down as far as it goes, again if it has grown. It comes to rest at the lowest place where the
  ;; other text has edits too, or else at the very lowest.
  (func $slide_group
    (local $size i32) (local $rest i32)
    (loop $grown
      (local.set $size (i32.sub (global.get $end) (global.get $start)))
      (loop $rise (br_if $rise (call $slide_up)))
      (local.set $rest (call $sink))
      (br_if $grown (i32.ne (local.get $size) (i32.sub (global.get $end) (global.get $start)))))
    (block $resting
      (loop $rise
        (br_if $resting (i32.le_s (global.get $start) (local.get $rest)))
        (br_if $rise (call $slide_up)))))

  ;; Slides the group down as far as it goes. Returns the lowest start on the way where the other text has edits too, or
  ;; where there is none, the lowest.
  (func $sink (result i32)
    (local $size i32) (local $rest i32)
    (local.set $rest (i32.const -1))
    (loop $next
      (if (i32.load8_u offset=0x110000 (global.get $kept))
        (then (local.set $rest (global.get $start))))
      (local.set $size (i32.sub (global.get $end) (global.get $start)))
      (if (call $slide_down)
        (then
          ;; A group that has grown cannot go back to where it was.
          (if (i32.ne (local.get $size) (i32.sub (global.get $end) (global.get $start)))
            (then (local.set $rest (i32.const -1))))
          (br $next))))
    (select (global.get $start) (local.get $rest) (i32.lt_s (local.get $rest) (i32.const 0))))

  ;; Slides the group up by a line, if it can. Returns whether it did.
  (func $slide_up (result i32)
    (if (i32.eqz (global.get $start)) (then (return (i32.const 0))))
    (if (i32.eqz (call $may_slide
          (i32.sub (global.get $start) (i32.const 1)) (i32.sub (global.get $end) (i32.const 1))))
      (then (return (i32.const 0))))
    (global.set $start (i32.sub (global.get $start) (i32.const 1)))
    (global.set $end (i32.sub (global.get $end) (i32.const 1)))
    (global.set $kept (i32.sub (global.get $kept) (i32.const 1)))
    (call $set_edit (global.get $start) (i32.const 1))
    (call $set_edit (global.get $end) (i32.const 0))
    (block $taken_in
      (loop $take_in
        (br_if $taken_in (i32.eqz (global.get $start)))
        (br_if $taken_in (i32.eqz
          (i32.load8_u (i32.add (global.get $edits) (i32.sub (global.get $start) (i32.const 1))))))
        (global.set $start (i32.sub (global.get $start) (i32.const 1)))
        (br $take_in)))
    (i32.const 1))

  ;; Slides the group down by a line, if it can. Returns whether it did.
  (func $slide_down (result i32)
    (if (i32.eq (global.get $end) (global.get $count)) (then (return (i32.const 0))))
    (if (i32.eqz (call $may_slide (global.get $start) (global.get $end))) (then (return (i32.const 0))))
    (call $set_edit (global.get $start) (i32.const 0))
    (call $set_edit (global.get $end) (i32.const 1))
    (global.set $start (i32.add (global.get $start) (i32.const 1)))
    (global.set $kept (i32.add (global.get $kept) (i32.const 1)))
    (global.set $end (call $skip (global.get $edits) (global.get $end) (global.get $count) (i32.const 1)))
    (i32.const 1))

  ;; Whether two lines are equal and a slide is left, which is thereby used.
  (func $may_slide (param $one i32) (param $other i32) (result i32)
    (if (i32.ne
          (i32.load (i32.add (global.get $lines) (i32.shl (local.get $one) (i32.const 2))))
          (i32.load (i32.add (global.get $lines) (i32.shl (local.get $other) (i32.const 2)))))
      (then (return (i32.const 0))))
    (if (i32.eqz (global.get $slides)) (then (return (i32.const 0))))
    (global.set $slides (i32.sub (global.get $slides) (i32.const 1)))
    (i32.const 1))

  (func $set_edit (param $line i32) (param $flag i32)
    (i32.store8 (i32.add (global.get $edits) (local.get $line)) (local.get $flag)))

  ;; ---------------------------------------------------------------------------------------------------------------
  ;; The script
  ;; ---------------------------------------------------------------------------------------------------------------

  ;; How far the walk through the edits of both texts has come, and the script.
  (global $a (mut i32) (i32.const 0))
  (global $b (mut i32) (i32.const 0))
  (global $out (mut i32) (i32.const 0))

  ;; Writes the script and returns its length, after giving up as many equal lines as it takes to make it fit.
  (func $write_to_fit (result i32)
    (local $size i32) (local $run i32)
    (loop $retry
      (local.set $size (call $write))
      (if (i32.gt_u (local.get $size) (i32.const 262144))
        (then
          (local.set $run (i32.add (local.get $run) (i32.const 1)))
          ;; Too many bytes, rounded up to blocks.
          (call $give_up (local.get $run)
            (i32.div_u (i32.sub (local.get $size) (i32.const 262128)) (i32.const 17)))
          (br $retry))))
    (local.get $size))

  ;; Writes as much of the script as fits, and returns how long all of it is.
  (func $write (result i32)
    (local $from_a i32) (local $from_b i32) (local $kept i32)
    (global.set $a (i32.const 0))
    (global.set $b (i32.const 0))
    (global.set $out (i32.const 0x30000))
    (loop $next
      (local.set $from_a (global.get $a))
      (local.set $from_b (global.get $b))
      (drop (call $pass_edits))
      (call $block (i32.const 1)
        (local.get $from_a) (i32.sub (global.get $a) (local.get $from_a)) (i32.const 0) (i32.const 0))
      (call $block (i32.const 2)
        (i32.const 0) (i32.const 0) (local.get $from_b) (i32.sub (global.get $b) (local.get $from_b)))
      (local.set $from_a (global.get $a))
      (local.set $from_b (global.get $b))
      (local.set $kept (call $pass_kept))
      (call $block (i32.const 0)
        (local.get $from_a) (local.get $kept) (local.get $from_b) (local.get $kept))
      (br_if $next (local.get $kept)))
    ;; $block leaves room for this byte.
    (if (i32.lt_u (global.get $out) (i32.const 0x70000))
      (then (i32.store8 (global.get $out) (i32.const 255))))
    (i32.sub (global.get $out) (i32.const 0x2ffff)))

  ;; Writes a block, unless it has no lines or no room.
  (func $block (param $op i32) (param $a i32) (param $a_count i32) (param $b i32) (param $b_count i32)
    (if (i32.eqz (i32.or (local.get $a_count) (local.get $b_count))) (then (return)))
    (if (i32.lt_u (global.get $out) (i32.const 0x6ffef))
      (then
        (i32.store8 offset=0 (global.get $out) (local.get $op))
        (i32.store offset=1 (global.get $out) (local.get $a))
        (i32.store offset=5 (global.get $out) (local.get $a_count))
        (i32.store offset=9 (global.get $out) (local.get $b))
        (i32.store offset=13 (global.get $out) (local.get $b_count))))
    (global.set $out (i32.add (global.get $out) (i32.const 17))))

  ;; Walks past the edits in both texts, and returns how many blocks they make: none, one or two.
  (func $pass_edits (result i32)
    (local $from_a i32) (local $from_b i32)
    (local.set $from_a (global.get $a))
    (local.set $from_b (global.get $b))
    (global.set $a (call $skip (i32.const 0xf0000) (global.get $a) (global.get $count_a) (i32.const 1)))
    (global.set $b (call $skip (i32.const 0x100000) (global.get $b) (global.get $count_b) (i32.const 1)))
    (i32.add
      (i32.ne (global.get $a) (local.get $from_a))
      (i32.ne (global.get $b) (local.get $from_b))))

  ;; Walks past the kept lines up to the next edit in either text, and returns how many there are.
  (func $pass_kept (result i32)
    (local $from i32)
    (local.set $from (global.get $a))
    (block $done
      (loop $next
        (br_if $done (i32.eq (global.get $a) (global.get $count_a)))
        (br_if $done (i32.or
          (i32.load8_u offset=0xf0000 (global.get $a))
          (i32.load8_u offset=0x100000 (global.get $b))))
        (global.set $a (i32.add (global.get $a) (i32.const 1)))
        (global.set $b (i32.add (global.get $b) (i32.const 1)))
        (br $next)))
    (i32.sub (global.get $a) (local.get $from)))

  ;; Turns kept runs of at most $run lines that lie between edits into edits, from the top, until $excess blocks are
  ;; saved. Around such a run lie two to four blocks of edits, and two are left, so every one given up saves some.
  (func $give_up (param $run i32) (param $excess i32)
    (local $above i32) (local $below i32) (local $from_a i32) (local $from_b i32) (local $kept i32)
    (global.set $a (i32.const 0))
    (global.set $b (i32.const 0))
    (local.set $above (call $pass_edits))
    (loop $next
      (local.set $from_a (global.get $a))
      (local.set $from_b (global.get $b))
      (local.set $kept (call $pass_kept))
      (local.set $below (call $pass_edits))
      (if (i32.eqz (local.get $below)) (then (return)))
      (if (i32.and (i32.ne (local.get $above) (i32.const 0)) (i32.le_u (local.get $kept) (local.get $run)))
        (then
          (memory.fill (i32.add (i32.const 0xf0000) (local.get $from_a)) (i32.const 1) (local.get $kept))
          (memory.fill (i32.add (i32.const 0x100000) (local.get $from_b)) (i32.const 1) (local.get $kept))
          (local.set $excess
            (i32.sub (local.get $excess)
              (i32.sub (i32.add (local.get $above) (local.get $below)) (i32.const 1))))
          (if (i32.le_s (local.get $excess) (i32.const 0)) (then (return)))
          (local.set $above (i32.const 2)))
        (else (local.set $above (local.get $below))))
      (br $next))))
