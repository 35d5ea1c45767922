//! Extensions as their hosts have them: compiled in a worker, called in this process.
//!
//! The program is its own worker: what compiles is this very file, started again. So it has a `main` of its own.
//!
//! | part | idea |
//! |---|---|
//! | `world` | facts, secrets, receipts and a clock that the calls have |
//! | `cases` | the cases of `tests/conformance/cases/extensions`, and how one is run |
//! | `anything` | imports that are called with any numbers |
//! | `shared` | many calls at the same time, and what they share |
//! | `compiling` | code in memory and on disk, and modules that are costly to compile |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod anything;
mod cases;
mod compiling;
mod shared;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use toolshelf_sandbox::process::WORKER_COMMAND;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == WORKER_COMMAND) {
        return toolshelf_sandbox::worker_main(arguments);
    }
    let trials = vec![
        trial("every_import_answers_as_the_contract_says", cases::imports),
        trial("no_numbers_lead_an_import_astray", anything::numbers),
        trial("every_module_ends_as_the_contract_says", cases::modules),
        trial("concurrent_calls_see_nothing_of_each_other", shared::nothing_of_each_other),
        trial("more_calls_than_places_all_end", shared::more_calls_than_places),
        trial("calls_that_spin_do_not_stop_others", shared::spinning_beside_others),
        trial("an_instance_finds_no_traces_of_another", shared::no_traces),
        trial("code_is_compiled_once_and_kept_on_disk", compiling::kept),
        trial("code_of_shelves_is_not_taken_for_extensions", compiling::apart),
        trial("what_was_written_into_the_cache_by_others_is_not_used", compiling::forged),
        trial("modules_that_are_costly_to_compile_are_refused_by_name", compiling::bombs),
        trial("a_module_above_the_bound_is_not_compiled", compiling::too_large),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}
