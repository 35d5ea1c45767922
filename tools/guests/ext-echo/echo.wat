;; An extension without any SDK: it answers with the request itself, `{"result": REQUEST}`, and writes one line of the
;; log. It is made to be read; `docs/extensions-for-authors.md` has the contract in tables.
(module
  ;; The host's functions are imports of the module `crux`. A module imports those that it calls.
  ;; log(level_ptr, level_len, msg_ptr, msg_len): two texts in UTF-8.
  (import "crux" "log" (func $log (param i32 i32 i32 i32)))

  ;; The host reads and writes this memory. It writes the request at 0 and has the response written right behind it: a
  ;; request has up to 256 KiB, a response up to 64 KiB. So whatever a module keeps at low addresses is overwritten, and
  ;; this one keeps its three texts in the seventh page, at 393,216, which is past both.
  (memory (export "memory") 7)

  (data (i32.const 393216) "{\22result\22:")  ;; 10 bytes
  (data (i32.const 393232) "info")            ;; 4 bytes
  (data (i32.const 393248) "echoed")          ;; 6 bytes

  ;; The one function that the host calls. The request has $req_len bytes at $req_ptr. The response goes to $resp_ptr,
  ;; at most $resp_cap bytes; what is returned is how many there are, or -1 if they do not fit.
  (func (export "extension_call")
    (param $req_ptr i32) (param $req_len i32) (param $resp_ptr i32) (param $resp_cap i32)
    (result i32)
    (local $len i32)

    ;; A host that lays out more than this module is made for would have overwritten the texts: better a trap than a
    ;; wrong answer.
    (if (i32.gt_u (i32.add (local.get $resp_ptr) (local.get $resp_cap)) (i32.const 393216))
      (then unreachable))

    ;; len = the beginning, the request and the brace; -1 if that is more than there is room for.
    (local.set $len (i32.add (local.get $req_len) (i32.const 11)))
    (if (i32.gt_u (local.get $len) (local.get $resp_cap))
      (then (return (i32.const -1))))

    ;; {"result":
    (memory.copy (local.get $resp_ptr) (i32.const 393216) (i32.const 10))
    ;; The request, which is JSON already.
    (memory.copy
      (i32.add (local.get $resp_ptr) (i32.const 10)) (local.get $req_ptr) (local.get $req_len))
    ;; }
    (i32.store8
      (i32.add (local.get $resp_ptr) (i32.sub (local.get $len) (i32.const 1))) (i32.const 125))

    (call $log (i32.const 393232) (i32.const 4) (i32.const 393248) (i32.const 6))
    (local.get $len)))
