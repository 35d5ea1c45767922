use super::*;
use crate::placement::Placement;

const ENV: &str = "env_0123456789abcdef";

fn bounds() -> PlacementBounds {
    Placement::Remote.bounds()
}

fn call() -> Value {
    json!({
        "v": 1, "callId": "c", "tool": "task_status", "descriptorId": descriptor_id(ENV, "task_status", &bounds()),
        "args": {"address": "task_x"}, "boundsEcho": bounds(),
    })
}

fn code_of(frame: &Value) -> Code {
    let read = Call::read(&frame.to_string()).map_err(|(_, refusal)| refusal);
    read.and_then(|call| call.check(ENV, &bounds())).unwrap_err().code
}

fn with(field: &str, value: Value) -> Value {
    let mut frame = call();
    frame[field] = value;
    frame
}

#[test]
fn first_frames_are_strict() {
    for first in
        [First::Hello { bearer: "t".into() }, First::Pair { code: "12345678".into(), name: "x".into() }]
    {
        assert_eq!(First::read(&first.text()).unwrap(), first);
        assert!(!format!("{first:?}").contains("12345678"));
    }
    for (frame, code) in [
        (json!({"type": "hello", "role": "environment", "bearer": "t", "x": 1}), Code::UnknownField),
        (json!({"type": "pair", "v": 1, "code": "1", "name": "x", "bearer": "t"}), Code::UnknownField),
        (json!({"type": "hello", "role": "page", "bearer": "t"}), Code::ExecutorUnauthenticated),
        (json!({"type": "hello", "bearer": "t"}), Code::InvalidFrame),
        (json!({"type": "pair", "v": 2, "code": "1", "name": "x"}), Code::InvalidFrame),
        (json!({"v": 1}), Code::ExecutorUnauthenticated),
        (json!([]), Code::ExecutorUnauthenticated),
    ] {
        assert_eq!(First::read(&frame.to_string()).unwrap_err().code, code, "{frame}");
    }
    assert_eq!(First::read("{").unwrap_err().code, Code::ExecutorUnauthenticated);
}

#[test]
fn a_call_says_what_was_handed_out_and_nothing_else() {
    let read = Call::read(&call().to_string()).unwrap();
    assert_eq!(read.check(ENV, &bounds()), Ok(()));
    assert_eq!(serde_json::to_value(&read).unwrap(), call());
    let longer = PlacementBounds { max_deadline_ms: 1, ..bounds() };
    for (frame, code) in [
        (with("owner", json!("local")), Code::UnknownField),
        (with("boundsEcho", json!({"maxOutputBytes": 1, "more": 1})), Code::UnknownField),
        (with("boundsEcho", json!({"maxOutputBytes": 1})), Code::InvalidFrame),
        (with("boundsEcho", json!(7)), Code::InvalidFrame),
        (with("boundsEcho", json!(longer)), Code::BoundsMismatch),
        (with("descriptorId", json!("tool_0123456789abcdef")), Code::UnattributedCall),
        (
            with("descriptorId", json!(descriptor_id("env_x", "task_status", &bounds()))),
            Code::UnattributedCall,
        ),
        (with("tool", json!("cancel_task")), Code::UnattributedCall),
        (with("tool", json!("ext.install")), Code::UnattributedCall),
        (with("args", json!([])), Code::InvalidFrame),
        (with("v", json!(2)), Code::InvalidFrame),
        (with("callId", json!(7)), Code::InvalidFrame),
    ] {
        assert_eq!(code_of(&frame), code, "{frame}");
    }
    // With a name that fits its tampered bounds, the bounds are still not those of the environment.
    let mut forged = with("boundsEcho", json!(longer));
    forged["descriptorId"] = json!(descriptor_id(ENV, "task_status", &longer));
    assert_eq!(code_of(&forged), Code::BoundsMismatch);
    let (call_id, _) = Call::read(&with("owner", json!(1)).to_string()).unwrap_err();
    assert_eq!(call_id.as_deref(), Some("c"), "so that it can be answered");
}

#[test]
fn answers_have_what_was_observed_or_a_reason() {
    let answer = |result| Told::Answer(Answer { call_id: "c".into(), result });
    for told in [answer(Ok(json!({"ok": true}))), answer(Err(Refusal::new(Code::TaskNotFound, "no")))] {
        assert_eq!(Told::read(&told.text()).unwrap(), told);
    }
    for (frame, code) in [
        (json!({"v": 1, "callId": "c", "ok": true}), Code::InvalidFrame),
        (json!({"v": 1, "callId": "c", "ok": true, "observed": 7}), Code::InvalidFrame),
        (json!({"v": 1, "callId": "c", "ok": true, "observed": {}, "why": "x"}), Code::UnknownField),
        (json!({"v": 1, "callId": "c", "ok": false, "refused": "task-not-found"}), Code::InvalidFrame),
        (json!({"v": 1, "callId": "c", "observed": {}}), Code::InvalidFrame),
        (json!({"v": 2, "callId": "c", "ok": true, "observed": {}}), Code::InvalidFrame),
        (json!({"type": "bye"}), Code::InvalidFrame),
        (json!({"type": "refused", "refused": "bearer-refused", "why": "x", "more": 1}), Code::UnknownField),
    ] {
        assert_eq!(Told::read(&frame.to_string()).unwrap_err().code, code, "{frame}");
    }
    let unknown = json!({"v": 1, "callId": "c", "ok": false, "refused": "of-the-future", "why": "x"});
    let Told::Answer(read) = Told::read(&unknown.to_string()).unwrap() else { panic!("no answer") };
    assert_eq!(read.result.unwrap_err().code, Code::InvalidFrame, "an answer all the same");
    let long = answer(Ok(json!({"x": "x".repeat(CHANNEL_FRAME_MAX_BYTES)}))).text();
    let Told::Answer(read) = Told::read(&long).unwrap() else { panic!("no answer") };
    assert_eq!(read.result.unwrap_err().code, Code::OverBudget);
    let refused = Told::Refused(Refusal::new(Code::BearerRefused, "no"));
    assert_eq!(Told::read(&refused.text()).unwrap(), refused);
}

#[test]
fn a_machine_says_what_it_is_and_what_can_be_called() {
    let environment = MachineEnvironment {
        key: ENV.into(),
        placement: Placement::Remote,
        label: "studio".into(),
        bounds: bounds(),
        active: 0,
        roots: vec![],
        agents: vec![],
        version: "1".into(),
    };
    let ready = Told::Ready {
        environment: Box::new(environment.clone()),
        descriptors: descriptors(ENV, &bounds()),
        tools: vec![json!({"name": "hash"})],
    };
    assert_eq!(Told::read(&ready.text()).unwrap(), ready);
    let paired = Paired {
        bearer: "secret".into(),
        pairing: "p".into(),
        name: "ann".into(),
        scopes: Scope::ALL.into(),
        expires_at_ms: None,
        environment,
    };
    assert!(!format!("{paired:?}").contains("secret"));
    let told = Told::Paired(Box::new(paired));
    assert_eq!(Told::read(&told.text()).unwrap(), told);
}
