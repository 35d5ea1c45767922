//! A companion that is not there, in a real browser: what is told, and that nothing waits for ever. The real one is
//! asked in the tests of the page.

#![cfg(target_arch = "wasm32")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::cell::RefCell;
use std::rc::Rc;

use gloo_timers::future::TimeoutFuture;
use serde_json::json;
use toolshelf_browser::companion::{Client, Companion, Connection, Facts, Heard, Installed};
use toolshelf_browser::tasks::{Delegation, Filter};
use toolshelf_core::refusal::{Code, Refusal};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// A server that is no companion: the one that serves this test.
fn origin() -> String {
    let location = js_sys::Reflect::get(&js_sys::global(), &"location".into()).unwrap();
    js_sys::Reflect::get(&location, &"origin".into()).unwrap().as_string().unwrap()
}

/// An address at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9";

fn code<T>(answer: Result<T, Refusal>) -> Option<Code> {
    answer.err().map(|refusal| refusal.code)
}

#[wasm_bindgen_test]
async fn a_server_that_is_no_companion_is_told_from_one_that_is_not_there() {
    let client = Client::new(&origin(), "token");
    let elsewhere: Refusal = client.get("/v1/environment").await.unwrap_err();
    assert_eq!(elsewhere.code, Code::MachineUnreachable);
    assert!(elsewhere.why.contains("status 404"), "{}", elsewhere.why);
    let nobody = Client::new(NOBODY, "token").get("/v1/environment").await;
    assert_eq!(code(nobody), Some(Code::MachineUnreachable));
    let nobody = Client::new(NOBODY, "token").post("/v1/tasks", &json!({})).await;
    assert_eq!(code(nobody), Some(Code::MachineUnreachable));
    // Nothing of a token gets into what is printed.
    assert!(!format!("{client:?}").contains("token\""), "{client:?}");
}

#[wasm_bindgen_test]
async fn an_answer_that_is_no_json_is_named() {
    let answer = Client::new(&origin(), "token").get("/").await;
    assert_eq!(code(answer), Some(Code::InvalidFrame));
}

#[wasm_bindgen_test]
async fn a_connection_that_cannot_be_had_is_tried_again_until_it_is_given_up() {
    let told: Rc<RefCell<Vec<Connection>>> = Rc::default();
    let hear = {
        let told = Rc::clone(&told);
        move |heard| {
            if let Heard::Connection(connection) = heard {
                told.borrow_mut().push(connection);
            }
        }
    };
    let companion = Companion::connect(&origin(), "token", hear);
    assert!(told.borrow().is_empty());
    let wait_for = async |tries: usize| {
        for _ in 0..500 {
            let waits = told.borrow().iter().filter(|now| matches!(now, Connection::Waiting { .. })).count();
            if waits >= tries {
                return;
            }
            TimeoutFuture::new(20).await;
        }
        panic!("{:?}", told.borrow());
    };
    wait_for(1).await;
    assert!(
        matches!(&told.borrow()[..], [Connection::Connecting, Connection::Waiting { why, .. }]
            if why.code == Code::MachineUnreachable),
        "{:?}",
        told.borrow()
    );
    companion.retry();
    wait_for(2).await;
    drop(companion);
    let before = told.borrow().len();
    TimeoutFuture::new(1_500).await;
    assert_eq!(told.borrow().len(), before);
}

#[wasm_bindgen_test]
async fn extensions_and_facts_of_nobody_are_refused_and_not_waited_for() {
    let client = Client::new(NOBODY, "token");
    let (installed, facts) = (Installed::new(client.clone()), Facts::new(client));
    let unreachable = |status: u16, code: Code| assert_eq!((status, code), (0, Code::MachineUnreachable));
    let no = installed.list().await.unwrap_err();
    unreachable(no.status, no.refusal.code);
    let no = installed.invoke("ext.a", "t", "p", &json!({})).await.unwrap_err();
    unreachable(no.status, no.refusal.code);
    let no = facts.browse("", None, false).await.unwrap_err();
    unreachable(no.status, no.refusal.code);
    // A server that is no companion answers with something else than a problem.
    let no = Installed::new(Client::new(&origin(), "token")).list().await.unwrap_err();
    unreachable(no.status, no.refusal.code);
    assert!(no.refusal.why.contains("status 404"), "{}", no.refusal.why);
}

#[wasm_bindgen_test]
async fn tasks_of_nobody_are_refused_and_not_waited_for() {
    let companion = Companion::connect(&origin(), "token", |_| {});
    let tasks = companion.tasks();
    assert_eq!(tasks.environment(), None);
    assert_eq!(code(tasks.list(Filter::All, None, 50).await), Some(Code::MachineUnreachable));
    assert_eq!(code(tasks.detail(1).await), Some(Code::MachineUnreachable));
    assert_eq!(code(tasks.cancel("address").await), Some(Code::MachineUnreachable));
    assert_eq!(
        code(companion.call("hash", vec![("input".into(), b"abc".to_vec())]).await),
        Some(Code::MachineUnreachable)
    );
    let delegation = Delegation { agent: "hash".into(), task: "abc".into(), deadline_ms: None, root: None };
    assert_eq!(code(tasks.delegate(delegation).await), Some(Code::MachineUnreachable));
}
