//! The connection to a remote, opened again and again.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::frame::{First, Told};
use toolshelf_host::Reply;

use super::connection::{Came, Connection};
use super::environment::{Inner, Ready, RemoteEnvironment, Standing, WAITING_MAX, gone, invalid};
use super::environments::Known;

/// Pauses between tries to connect.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often the other side is asked whether it is there, and how long it may say nothing.
const PING: Duration = Duration::from_secs(10);
const SILENCE_MAX: Duration = Duration::from_secs(35);

/// Connects again and again, until it is stopped.
pub(super) async fn keep(remote: Rc<Inner>) {
    let mut pause = PAUSE_FIRST;
    loop {
        remote.stand(Standing::Connecting);
        let ended = match open(&remote).await {
            Ok(connection) => {
                pause = PAUSE_FIRST;
                session(&remote, connection).await
            }
            Err(refusal) => refusal,
        };
        let label = &remote.known.label;
        tracing::info!(
            remote = label,
            refused = ended.code.as_str(),
            why = ended.why,
            "a remote is not connected"
        );
        remote.failed.set(remote.failed.get() + 1);
        remote.outgoing.take();
        remote.give_up(&lost_with(&ended));
        let is_final = is_final(ended.code);
        remote.stand(if is_final { Standing::Refused(ended) } else { Standing::Unreachable(ended) });
        if is_final {
            // Until it is asked for by hand.
            remote.wake.notified().await;
            continue;
        }
        tokio::select! {
            () = remote.wake.notified() => {}
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// A connection that is ready.
async fn open(remote: &Inner) -> Result<Connection, Refusal> {
    let Known { address, bearer, .. } = &remote.known;
    let first = First::Hello { bearer: bearer.clone() };
    let opened = Connection::open(address, &remote.known.trust()?, &first).await;
    let (connection, told) = opened.map_err(|refusal| match refusal.code {
        // Nothing was asked yet, so nothing can have been done.
        Code::MachineClosed | Code::MachineTimeout => Refusal::new(Code::MachineUnreachable, refusal.why),
        _ => refusal,
    })?;
    remote.welcome(told)?;
    Ok(connection)
}

/// A refusal after which trying again is of no use.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::BearerRefused
            | Code::PairingRevoked
            | Code::PairingExpired
            | Code::EnvironmentMismatch
            | Code::MachineUntrusted
            | Code::ConfigInvalid
            | Code::PairingListUnreadable
    )
}

impl Inner {
    fn welcome(&self, told: Told) -> Result<(), Refusal> {
        let Told::Ready { environment, descriptors, tools } = told else {
            return Err(invalid("it did not say that it is ready"));
        };
        if environment.key != self.known.key {
            let (paired, found) = (&self.known.key, cut(&environment.key, 60));
            let why =
                format!("{} is the environment {found:?} now, and {paired:?} was paired", self.known.address);
            return Err(Refusal::new(Code::EnvironmentMismatch, why));
        }
        self.ready.replace(Some(Ready { environment: *environment, descriptors, tools }));
        Ok(())
    }
}

/// One session; answers why it ended.
async fn session(remote: &Rc<Inner>, mut connection: Connection) -> Refusal {
    let (sender, mut outgoing) = mpsc::channel(WAITING_MAX);
    remote.outgoing.replace(Some(sender));
    remote.stand(Standing::Connected);
    tracing::info!(remote = remote.known.label, "a remote is connected");
    look_again(remote);
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_sign = Instant::now();
    loop {
        let done = tokio::select! {
            came = connection.next() => came.map(|came| {
                last_sign = Instant::now();
                match came {
                    Came::Told(Told::Answer(answer)) => remote.answered(answer),
                    Came::Told(Told::Task(task)) => remote.heard(task),
                    Came::Told(Told::Refused(refusal)) => return Err(refusal),
                    Came::Told(_) | Came::Sign => {}
                }
                Ok(())
            }).and_then(|done| done),
            frame = outgoing.recv() => match frame {
                Some(frame) => connection.send(frame).await,
                None => Err(gone()),
            },
            _ = pings.tick() => match last_sign.elapsed() > SILENCE_MAX {
                true => Err(Refusal::new(Code::MachineTimeout, "the remote has given no sign for too long")),
                false => connection.ping().await,
            },
        };
        if let Err(refusal) = done {
            connection.close().await;
            return refusal;
        }
    }
}

/// Asks for tasks that may have changed while nobody was connected.
fn look_again(remote: &Rc<Inner>) {
    let addresses: Vec<String> = remote.followed.borrow().iter().cloned().collect();
    let remote = RemoteEnvironment { inner: Rc::clone(remote) };
    if addresses.is_empty() {
        return;
    }
    spawn_local(async move {
        for address in addresses {
            let args = Map::from_iter([("address".to_owned(), Value::from(address))]);
            let answered = remote.ask("task_status", &args, None).await;
            if let Ok(Reply::Status { task }) =
                answered.and_then(|seen| remote.inner.reply("task_status", seen))
            {
                remote.inner.heard(Box::new(task));
            }
        }
    });
}

/// Why a call has no answer, when its connection ended like that.
fn lost_with(ended: &Refusal) -> Refusal {
    if is_final(ended.code) {
        return ended.clone();
    }
    let why = format!("the connection was lost before the answer came, and it may have acted: {}", ended.why);
    Refusal::new(Code::MachineClosed, why)
}
