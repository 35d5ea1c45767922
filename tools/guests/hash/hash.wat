;; SHA-256 (FIPS 180-4) of up to 8,192 bytes, as a shelf tool of the ABI `buffer-abi/1`.
;;
;; The host writes the message at 0x400, calls `sha256(length)` and reads 32 bytes at 0x2400.
;; The module imports nothing and its memory cannot grow, so all it can do is compute.
;;
;; Memory, all of it fixed:
;;
;;   0x0000   256  K, the 64 round constants
;;   0x0100    32  the eight state words
;;   0x0120    32  H0, the state that every message starts from
;;   0x0200   256  W, the message schedule of the block at work
;;   0x0300   128  the last one or two blocks, with their padding
;;   0x0400  8192  input
;;   0x2400    32  output
;;
;; W lies exactly 0x200 above K, so that one address reaches both.
;; The padding gets a place of its own because a full input leaves no room behind itself: the output starts there.

(module
  (memory (export "memory") 2 2)

  ;; Wasm loads are little-endian, hence the turned-round bytes.
  (data (i32.const 0x0000)
    "\98\2f\8a\42\91\44\37\71\cf\fb\c0\b5\a5\db\b5\e9"  ;; 428a2f98 71374491 b5c0fbcf e9b5dba5
    "\5b\c2\56\39\f1\11\f1\59\a4\82\3f\92\d5\5e\1c\ab"  ;; 3956c25b 59f111f1 923f82a4 ab1c5ed5
    "\98\aa\07\d8\01\5b\83\12\be\85\31\24\c3\7d\0c\55"  ;; d807aa98 12835b01 243185be 550c7dc3
    "\74\5d\be\72\fe\b1\de\80\a7\06\dc\9b\74\f1\9b\c1"  ;; 72be5d74 80deb1fe 9bdc06a7 c19bf174
    "\c1\69\9b\e4\86\47\be\ef\c6\9d\c1\0f\cc\a1\0c\24"  ;; e49b69c1 efbe4786 0fc19dc6 240ca1cc
    "\6f\2c\e9\2d\aa\84\74\4a\dc\a9\b0\5c\da\88\f9\76"  ;; 2de92c6f 4a7484aa 5cb0a9dc 76f988da
    "\52\51\3e\98\6d\c6\31\a8\c8\27\03\b0\c7\7f\59\bf"  ;; 983e5152 a831c66d b00327c8 bf597fc7
    "\f3\0b\e0\c6\47\91\a7\d5\51\63\ca\06\67\29\29\14"  ;; c6e00bf3 d5a79147 06ca6351 14292967
    "\85\0a\b7\27\38\21\1b\2e\fc\6d\2c\4d\13\0d\38\53"  ;; 27b70a85 2e1b2138 4d2c6dfc 53380d13
    "\54\73\0a\65\bb\0a\6a\76\2e\c9\c2\81\85\2c\72\92"  ;; 650a7354 766a0abb 81c2c92e 92722c85
    "\a1\e8\bf\a2\4b\66\1a\a8\70\8b\4b\c2\a3\51\6c\c7"  ;; a2bfe8a1 a81a664b c24b8b70 c76c51a3
    "\19\e8\92\d1\24\06\99\d6\85\35\0e\f4\70\a0\6a\10"  ;; d192e819 d6990624 f40e3585 106aa070
    "\16\c1\a4\19\08\6c\37\1e\4c\77\48\27\b5\bc\b0\34"  ;; 19a4c116 1e376c08 2748774c 34b0bcb5
    "\b3\0c\1c\39\4a\aa\d8\4e\4f\ca\9c\5b\f3\6f\2e\68"  ;; 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3
    "\ee\82\8f\74\6f\63\a5\78\14\78\c8\84\08\02\c7\8c"  ;; 748f82ee 78a5636f 84c87814 8cc70208
    "\fa\ff\be\90\eb\6c\50\a4\f7\a3\f9\be\f2\78\71\c6")  ;; 90befffa a4506ceb bef9a3f7 c67178f2
  (data (i32.const 0x0120)
    "\67\e6\09\6a\85\ae\67\bb\72\f3\6e\3c\3a\f5\4f\a5"  ;; 6a09e667 bb67ae85 3c6ef372 a54ff53a
    "\7f\52\0e\51\8c\68\05\9b\ab\d9\83\1f\19\cd\e0\5b")  ;; 510e527f 9b05688c 1f83d9ab 5be0cd19

  ;; The 32 byte digest of the first $len input bytes goes to 0x2400. Returns 32, or -1 for a length out of range.
  (func (export "sha256") (param $len i32) (result i32)
    (local $at i32) (local $rest i32) (local $end i32)

    ;; The comparison is unsigned, so it also turns away negative lengths.
    (if (i32.gt_u (local.get $len) (i32.const 8192))
      (then (return (i32.const -1))))

    (memory.copy (i32.const 0x100) (i32.const 0x120) (i32.const 32))

    ;; Whole blocks are hashed where they lie.
    (local.set $at (i32.const 0x400))
    (local.set $rest (local.get $len))
    (block $done
      (loop $blocks
        (br_if $done (i32.lt_u (local.get $rest) (i32.const 64)))
        (call $block (local.get $at))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (local.set $rest (i32.sub (local.get $rest) (i32.const 64)))
        (br $blocks)))

    ;; Then the tail: its bytes, a one bit, zeros, and the length in bits as the last eight bytes.
    ;; One block will do unless the tail leaves less than nine bytes of it free.
    (memory.fill (i32.const 0x300) (i32.const 0) (i32.const 128))
    (memory.copy (i32.const 0x300) (local.get $at) (local.get $rest))
    (i32.store8 offset=0x300 (local.get $rest) (i32.const 0x80))
    (local.set $end (select (i32.const 0x340) (i32.const 0x380) (i32.lt_u (local.get $rest) (i32.const 56))))
    (i32.store (i32.sub (local.get $end) (i32.const 4)) (call $swap (i32.shl (local.get $len) (i32.const 3))))
    (call $block (i32.const 0x300))
    (if (i32.eq (local.get $end) (i32.const 0x380))
      (then (call $block (i32.const 0x340))))

    (call $swap_words (i32.const 0x2400) (i32.const 0x100) (i32.const 32))
    (i32.const 32))

  ;; Turns a word's bytes round: SHA-256 is big-endian, wasm is not.
  (func $swap (param $x i32) (result i32)
    (i32.or
      (i32.and (i32.rotl (local.get $x) (i32.const 8)) (i32.const 0x00ff00ff))
      (i32.and (i32.rotr (local.get $x) (i32.const 8)) (i32.const 0xff00ff00))))

  ;; Copies $bytes (a multiple of four), turning the bytes of every word round.
  (func $swap_words (param $to i32) (param $from i32) (param $bytes i32)
    (loop $words
      (local.set $bytes (i32.sub (local.get $bytes) (i32.const 4)))
      (i32.store (i32.add (local.get $to) (local.get $bytes))
        (call $swap (i32.load (i32.add (local.get $from) (local.get $bytes)))))
      (br_if $words (local.get $bytes))))

  ;; Takes the 64 bytes at $at into the state.
  (func $block (param $at i32)
    (call $swap_words (i32.const 0x200) (local.get $at) (i32.const 64))
    (call $expand)
    (call $rounds))

  ;; W[t] = s1(W[t-2]) + W[t-7] + s0(W[t-15]) + W[t-16] for t from 16 to 63; $w is the address of W[t-16].
  (func $expand
    (local $w i32) (local $x i32) (local $y i32)
    (local.set $w (i32.const 0x200))
    (loop $words
      (local.set $x (i32.load offset=0x04 (local.get $w)))
      (local.set $y (i32.load offset=0x38 (local.get $w)))
      (i32.store offset=0x40 (local.get $w)
        (i32.add
          (i32.add (i32.load (local.get $w)) (i32.load offset=0x24 (local.get $w)))
          (i32.add
            (i32.xor
              (i32.xor (i32.rotr (local.get $x) (i32.const 7)) (i32.rotr (local.get $x) (i32.const 18)))
              (i32.shr_u (local.get $x) (i32.const 3)))
            (i32.xor
              (i32.xor (i32.rotr (local.get $y) (i32.const 17)) (i32.rotr (local.get $y) (i32.const 19)))
              (i32.shr_u (local.get $y) (i32.const 10))))))
      (br_if $words (i32.lt_u (local.tee $w (i32.add (local.get $w) (i32.const 4))) (i32.const 0x2c0)))))

  ;; The 64 rounds, eight at a time. A round gives only two of its eight variables a new value and moves the other six
  ;; along by one name. Eight rounds bring every name home, so written out they need no moves: round n+1 is round n
  ;; with each variable in the place of its successor.
  ;;
  ;;   t = h + K + W + S1(e) + Ch(e, f, g)
  ;;   d = d + t
  ;;   h = t + S0(a) + Maj(a, b, c)
  ;;
  ;; Ch and Maj are in the forms that take one operation less than the ones in the standard.
  (func $rounds
    (local $a i32) (local $b i32) (local $c i32) (local $d i32)
    (local $e i32) (local $f i32) (local $g i32) (local $h i32)
    (local $t i32) (local $k i32)
    (local.set $a (i32.load offset=0x100 (i32.const 0)))
    (local.set $b (i32.load offset=0x104 (i32.const 0)))
    (local.set $c (i32.load offset=0x108 (i32.const 0)))
    (local.set $d (i32.load offset=0x10c (i32.const 0)))
    (local.set $e (i32.load offset=0x110 (i32.const 0)))
    (local.set $f (i32.load offset=0x114 (i32.const 0)))
    (local.set $g (i32.load offset=0x118 (i32.const 0)))
    (local.set $h (i32.load offset=0x11c (i32.const 0)))
    (loop $eight
      ;; round 0
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $h) (i32.add (i32.load offset=0x0 (local.get $k)) (i32.load offset=0x200 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $e) (i32.const 6)) (i32.rotr (local.get $e) (i32.const 11)))
              (i32.rotr (local.get $e) (i32.const 25))))
          (i32.xor (local.get $g) (i32.and (local.get $e) (i32.xor (local.get $f) (local.get $g))))))
      (local.set $d (i32.add (local.get $d) (local.get $t)))
      (local.set $h
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $a) (i32.const 2)) (i32.rotr (local.get $a) (i32.const 13)))
              (i32.rotr (local.get $a) (i32.const 22))))
          (i32.or (i32.and (local.get $a) (local.get $b)) (i32.and (local.get $c) (i32.or (local.get $a) (local.get $b))))))
      ;; round 1
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $g) (i32.add (i32.load offset=0x4 (local.get $k)) (i32.load offset=0x204 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $d) (i32.const 6)) (i32.rotr (local.get $d) (i32.const 11)))
              (i32.rotr (local.get $d) (i32.const 25))))
          (i32.xor (local.get $f) (i32.and (local.get $d) (i32.xor (local.get $e) (local.get $f))))))
      (local.set $c (i32.add (local.get $c) (local.get $t)))
      (local.set $g
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $h) (i32.const 2)) (i32.rotr (local.get $h) (i32.const 13)))
              (i32.rotr (local.get $h) (i32.const 22))))
          (i32.or (i32.and (local.get $h) (local.get $a)) (i32.and (local.get $b) (i32.or (local.get $h) (local.get $a))))))
      ;; round 2
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $f) (i32.add (i32.load offset=0x8 (local.get $k)) (i32.load offset=0x208 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $c) (i32.const 6)) (i32.rotr (local.get $c) (i32.const 11)))
              (i32.rotr (local.get $c) (i32.const 25))))
          (i32.xor (local.get $e) (i32.and (local.get $c) (i32.xor (local.get $d) (local.get $e))))))
      (local.set $b (i32.add (local.get $b) (local.get $t)))
      (local.set $f
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $g) (i32.const 2)) (i32.rotr (local.get $g) (i32.const 13)))
              (i32.rotr (local.get $g) (i32.const 22))))
          (i32.or (i32.and (local.get $g) (local.get $h)) (i32.and (local.get $a) (i32.or (local.get $g) (local.get $h))))))
      ;; round 3
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $e) (i32.add (i32.load offset=0xc (local.get $k)) (i32.load offset=0x20c (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $b) (i32.const 6)) (i32.rotr (local.get $b) (i32.const 11)))
              (i32.rotr (local.get $b) (i32.const 25))))
          (i32.xor (local.get $d) (i32.and (local.get $b) (i32.xor (local.get $c) (local.get $d))))))
      (local.set $a (i32.add (local.get $a) (local.get $t)))
      (local.set $e
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $f) (i32.const 2)) (i32.rotr (local.get $f) (i32.const 13)))
              (i32.rotr (local.get $f) (i32.const 22))))
          (i32.or (i32.and (local.get $f) (local.get $g)) (i32.and (local.get $h) (i32.or (local.get $f) (local.get $g))))))
      ;; round 4
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $d) (i32.add (i32.load offset=0x10 (local.get $k)) (i32.load offset=0x210 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $a) (i32.const 6)) (i32.rotr (local.get $a) (i32.const 11)))
              (i32.rotr (local.get $a) (i32.const 25))))
          (i32.xor (local.get $c) (i32.and (local.get $a) (i32.xor (local.get $b) (local.get $c))))))
      (local.set $h (i32.add (local.get $h) (local.get $t)))
      (local.set $d
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $e) (i32.const 2)) (i32.rotr (local.get $e) (i32.const 13)))
              (i32.rotr (local.get $e) (i32.const 22))))
          (i32.or (i32.and (local.get $e) (local.get $f)) (i32.and (local.get $g) (i32.or (local.get $e) (local.get $f))))))
      ;; round 5
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $c) (i32.add (i32.load offset=0x14 (local.get $k)) (i32.load offset=0x214 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $h) (i32.const 6)) (i32.rotr (local.get $h) (i32.const 11)))
              (i32.rotr (local.get $h) (i32.const 25))))
          (i32.xor (local.get $b) (i32.and (local.get $h) (i32.xor (local.get $a) (local.get $b))))))
      (local.set $g (i32.add (local.get $g) (local.get $t)))
      (local.set $c
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $d) (i32.const 2)) (i32.rotr (local.get $d) (i32.const 13)))
              (i32.rotr (local.get $d) (i32.const 22))))
          (i32.or (i32.and (local.get $d) (local.get $e)) (i32.and (local.get $f) (i32.or (local.get $d) (local.get $e))))))
      ;; round 6
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $b) (i32.add (i32.load offset=0x18 (local.get $k)) (i32.load offset=0x218 (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $g) (i32.const 6)) (i32.rotr (local.get $g) (i32.const 11)))
              (i32.rotr (local.get $g) (i32.const 25))))
          (i32.xor (local.get $a) (i32.and (local.get $g) (i32.xor (local.get $h) (local.get $a))))))
      (local.set $f (i32.add (local.get $f) (local.get $t)))
      (local.set $b
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $c) (i32.const 2)) (i32.rotr (local.get $c) (i32.const 13)))
              (i32.rotr (local.get $c) (i32.const 22))))
          (i32.or (i32.and (local.get $c) (local.get $d)) (i32.and (local.get $e) (i32.or (local.get $c) (local.get $d))))))
      ;; round 7
      (local.set $t
        (i32.add
          (i32.add
            (i32.add (local.get $a) (i32.add (i32.load offset=0x1c (local.get $k)) (i32.load offset=0x21c (local.get $k))))
            (i32.xor
              (i32.xor (i32.rotr (local.get $f) (i32.const 6)) (i32.rotr (local.get $f) (i32.const 11)))
              (i32.rotr (local.get $f) (i32.const 25))))
          (i32.xor (local.get $h) (i32.and (local.get $f) (i32.xor (local.get $g) (local.get $h))))))
      (local.set $e (i32.add (local.get $e) (local.get $t)))
      (local.set $a
        (i32.add
          (i32.add
            (local.get $t)
            (i32.xor
              (i32.xor (i32.rotr (local.get $b) (i32.const 2)) (i32.rotr (local.get $b) (i32.const 13)))
              (i32.rotr (local.get $b) (i32.const 22))))
          (i32.or (i32.and (local.get $b) (local.get $c)) (i32.and (local.get $d) (i32.or (local.get $b) (local.get $c))))))
      (br_if $eight (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 32))) (i32.const 256))))
    (i32.store offset=0x100 (i32.const 0) (i32.add (local.get $a) (i32.load offset=0x100 (i32.const 0))))
    (i32.store offset=0x104 (i32.const 0) (i32.add (local.get $b) (i32.load offset=0x104 (i32.const 0))))
    (i32.store offset=0x108 (i32.const 0) (i32.add (local.get $c) (i32.load offset=0x108 (i32.const 0))))
    (i32.store offset=0x10c (i32.const 0) (i32.add (local.get $d) (i32.load offset=0x10c (i32.const 0))))
    (i32.store offset=0x110 (i32.const 0) (i32.add (local.get $e) (i32.load offset=0x110 (i32.const 0))))
    (i32.store offset=0x114 (i32.const 0) (i32.add (local.get $f) (i32.load offset=0x114 (i32.const 0))))
    (i32.store offset=0x118 (i32.const 0) (i32.add (local.get $g) (i32.load offset=0x118 (i32.const 0))))
    (i32.store offset=0x11c (i32.const 0) (i32.add (local.get $h) (i32.load offset=0x11c (i32.const 0))))))
