//! A guest depends on nothing of the host, so it has the return codes of the imports a second time. Both are the same.

use toolshelf_core::extension::rc as host;
use toolshelf_guest::extension as guest;

#[test]
fn host_and_guest_name_the_same_codes() {
    let of_host: Vec<_> =
        host::ReturnCode::ALL.iter().map(|code| (code.as_i32(), code.name(), code.meaning())).collect();
    let of_guest: Vec<_> =
        guest::ReturnCode::ALL.iter().map(|code| (code.as_i32(), code.name(), code.meaning())).collect();
    assert_eq!(of_host, of_guest);
    assert_eq!(host::RESERVED_CODES, guest::RESERVED_CODES);
}
