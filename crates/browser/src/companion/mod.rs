//! The companion: the program `toolshelf serve` on the person's own computer, as the page that it serves knows it.
//!
//! | module | idea |
//! |---|---|
//! | [`client`] | requests, each with the token and within bounds |
//! | [`live`] | the live session, opened again when it is lost |
//! | [`talk`] | a conversation with what answers in its live sessions |
//! | [`tasks`] | the tasks of the companion |
//! | [`installed`] | its extensions, their grants, calls and receipts |
//! | [`facts`] | its facts |
//! | [`problem`] | how extensions and facts say no |
//! | [`remotes`] | other machines, as the companion knows them |
//! | `wire` | what it says, read into the types of `core` |
//!
//! All of it is asked at the origin that the page came from: the page's policy allows no other.

pub mod client;
pub mod facts;
pub mod installed;
mod installed_wire;
pub mod live;
pub mod problem;
pub mod remotes;
pub mod talk;
pub mod tasks;
mod wire;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::{AbortHandle, abortable};
use gloo_timers::future::TimeoutFuture;
use serde_json::{Map, json};
use toolshelf_core::call::Answer;
use toolshelf_core::live::{CallNotice, MachineEnvironment};
use toolshelf_core::refusal::Refusal;
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::Reading;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

pub use self::client::Client;
pub use self::facts::Facts;
pub use self::installed::Installed;
pub use self::live::Connection;
pub use self::problem::Problem;
pub use self::remotes::Remotes;
pub use self::tasks::MachineTasks;

use self::client::{CALL_PATIENCE_MS, known};
use self::live::{Frame, Wake};
use crate::js;

/// Most tasks whose last state is remembered.
const MAX_KNOWN: usize = 1_000;
/// The events of a window after which a lost connection is worth a try at once.
const RETURNS: [&str; 2] = ["online", "visibilitychange"];

/// Something that the companion said, or that happened to the connection.
#[derive(Debug, Clone)]
pub enum Heard {
    /// How the connection stands.
    Connection(Connection),
    /// What the companion says of itself.
    Environment(Result<MachineEnvironment, Refusal>),
    /// Its shelves.
    Shelves(Result<Vec<Reading>, Refusal>),
    /// Tools were called, by this page or by anybody else.
    Calls(Vec<CallNotice>),
    /// What a task is now, and whether more than its note has changed.
    Task(Box<TaskView>, bool),
    /// Any task may have changed while nobody listened.
    ManyTasks,
}

/// A connection to the companion, which ends when the last clone is dropped.
#[derive(Clone)]
pub struct Companion {
    inner: Rc<Inner>,
}

struct Inner {
    client: Client,
    tasks: MachineTasks,
    hear: Box<dyn Fn(Heard)>,
    wake: Wake,
    follow: AbortHandle,
    is_refused: Cell<bool>,
    /// The states that tasks were last seen in, so that a note is told from a change.
    known: RefCell<BTreeMap<String, TaskState>>,
    turns: [Cell<Turn>; 2],
    on_return: Closure<dyn FnMut()>,
}

/// What is read again when it has changed.
#[derive(Clone, Copy)]
enum Part {
    Environment,
    Shelves,
}

/// How far the reading of a part is. While it is read, further wishes become one more reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    Idle,
    Reading,
    Again,
}

impl Companion {
    /// Connects to the companion at `origin` with its token, and stays connected. `hear` is told of everything.
    #[must_use]
    pub fn connect(origin: &str, bearer: &str, hear: impl Fn(Heard) + 'static) -> Self {
        let client = Client::new(origin, bearer);
        let inner = Rc::new_cyclic(|inner: &Weak<Inner>| {
            let wake = Wake::default();
            let (following, follow) = abortable(follow(client.clone(), wake.clone(), inner.clone()));
            spawn_local(async move {
                // It ends by being aborted.
                let _ = following.await;
            });
            let inner = inner.clone();
            let on_return = Closure::new(move || {
                // What was refused once is refused again, until a person changes something.
                if let Some(inner) = inner.upgrade().filter(|inner| !inner.is_refused.get()) {
                    inner.wake.now();
                }
            });
            Inner {
                tasks: MachineTasks::new(client.clone()),
                client,
                hear: Box::new(hear),
                wake,
                follow,
                is_refused: Cell::default(),
                known: RefCell::default(),
                turns: Default::default(),
                on_return,
            }
        });
        inner.listen("addEventListener");
        Self { inner }
    }

    /// Does at once what would be tried later, or was refused.
    pub fn retry(&self) {
        self.inner.wake.now();
    }

    /// What asks it for anything else.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &MachineTasks {
        &self.inner.tasks
    }

    /// Other machines.
    #[must_use]
    pub fn remotes(&self) -> Remotes {
        Remotes::new(self.inner.client.clone())
    }

    /// Calls a tool on the companion's computer. Dropping the future gives the call up.
    ///
    /// # Errors
    /// The refusal that names what ended the call; `machine-unreachable` where no answer came.
    pub async fn call(&self, id: &str, arguments: Vec<(String, Vec<u8>)>) -> Result<Answer, Refusal> {
        // The id of a tool that was admitted has nothing in it that would have to be escaped.
        let path = ["/v1/shelf/tools/", id, "/call"].concat();
        let mut args = Map::new();
        for (name, bytes) in arguments {
            args.insert(name, json!({ "base64": STANDARD.encode(bytes) }));
        }
        let answer = self.inner.client.post_within(&path, &json!({ "args": args }), CALL_PATIENCE_MS).await?;
        known(wire::answer(&answer))
    }
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion").field("client", &self.inner.client).finish_non_exhaustive()
    }
}

/// Keeps the live session of a companion that is still wanted.
async fn follow(client: Client, wake: Wake, inner: Weak<Inner>) {
    // Whoever connects is told nothing before they have the companion in their hands.
    TimeoutFuture::new(0).await;
    let tell = |connection| {
        if let Some(inner) = inner.upgrade() {
            inner.tell(connection);
        }
    };
    let hear = |frame| {
        if let Some(inner) = inner.upgrade() {
            inner.take(frame);
        }
    };
    live::follow(client.origin(), client.bearer(), &wake, tell, hear).await;
}

impl Inner {
    fn tell(self: &Rc<Self>, connection: Connection) {
        let is_open = connection == Connection::Connected;
        self.is_refused.set(matches!(connection, Connection::Refused(_)));
        (self.hear)(Heard::Connection(connection));
        if is_open {
            self.read(Part::Environment);
            self.read(Part::Shelves);
            (self.hear)(Heard::ManyTasks);
        }
    }

    fn take(self: &Rc<Self>, frame: Frame) {
        match frame {
            Frame::Calls(calls) => (self.hear)(Heard::Calls(calls)),
            Frame::Shelf => self.read(Part::Shelves),
            Frame::Task(task) => {
                let is_news = self.note(&task);
                if is_news {
                    self.read(Part::Environment);
                }
                (self.hear)(Heard::Task(task, is_news));
            }
            // The connection tells of the first two.
            Frame::Ready | Frame::Refused(_) | Frame::Other => {}
        }
    }

    /// Remembers the state of a task; answers whether it was another one before.
    fn note(&self, task: &TaskView) -> bool {
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(task.address.clone(), task.state) != Some(task.state)
    }

    fn read(self: &Rc<Self>, part: Part) {
        let turn = &self.turns[part as usize];
        if turn.get() != Turn::Idle {
            return turn.set(Turn::Again);
        }
        turn.set(Turn::Reading);
        // Nobody waits for an answer that nobody wants any more.
        let inner = Rc::downgrade(self);
        let (client, tasks) = (self.client.clone(), self.tasks.clone());
        spawn_local(async move {
            loop {
                let heard = match part {
                    Part::Environment => Heard::Environment(tasks.read_environment().await),
                    Part::Shelves => Heard::Shelves(read_shelves(&client).await),
                };
                let Some(inner) = inner.upgrade() else { return };
                (inner.hear)(heard);
                let turn = &inner.turns[part as usize];
                if turn.replace(Turn::Idle) != Turn::Again {
                    return;
                }
                turn.set(Turn::Reading);
            }
        });
    }

    /// Begins or ends to listen to the window, whose global object has events.
    fn listen(&self, method: &str) {
        for event in RETURNS {
            let listener = self.on_return.as_ref().clone();
            let _ = js::call(&js_sys::global(), method, &[event.into(), listener]);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.follow.abort();
        self.listen("removeEventListener");
    }
}

/// Reads the companion's shelves.
async fn read_shelves(client: &Client) -> Result<Vec<Reading>, Refusal> {
    let answer = client.get("/v1/shelf").await?;
    known(wire::list(&answer, "shelves", wire::reading))
}
