/**
 * Toolshelf: WebAssembly tools under hard limits, and tasks that can be watched and cancelled, in a page, a worker or
 * Node 20 and later, with no server.
 *
 * Every "no" is a value, `{ok: false, refused, why}`, and never an exception; the functions that do throw say so.
 * Times are in milliseconds, sizes in bytes of UTF-8.
 */

/** Where tasks run. */
export type Placement = "browser" | "machine" | "remote";

/** A "no" with its reason. `refusalCodes` says what each code means and what can be done about it. */
export interface Refusal {
  ok: false;
  /** A code out of a closed set: a key of {@link refusalCodes}. */
  refused: string;
  /** One sentence for a person, with the evidence. */
  why: string;
}

/** Version of this package. */
export const version: string;

/** What each refusal code means, and what a person can do about it. */
export const refusalCodes: Readonly<Record<string, Readonly<{ meaning: string; remedy: string }>>>;

// ---------------------------------------------------------------------------------------------------------- Tasks

export interface PlacementBounds {
  /** The deadline that an executor gets that names none, in milliseconds. */
  defaultDeadlineMs: number;
  /** The longest deadline, in milliseconds. */
  maxDeadlineMs: number;
  /** Most bytes of an answer. */
  maxOutputBytes: number;
  /** Tasks whose executors have not settled. */
  maxActiveTasks: number;
}

/** What each placement grants. Nothing that a caller or an executor says raises it. */
export const PLACEMENT_BOUNDS: Readonly<Record<Placement, Readonly<PlacementBounds>>>;

/** What an executor promises to keep to. */
export interface TaskBounds {
  /** Wall-clock deadline in milliseconds: a whole number above zero. */
  deadlineMs: number;
  /** Most bytes of the answer: a whole number above zero. */
  maxOutputBytes: number;
}

/** What is asked of which agent. */
export interface TaskInput {
  /** 1 to 80 letters, digits, `.`, `_` or `-`. */
  agent: string;
  /** Not blank, at most {@link TASK_MAX_BYTES} bytes. */
  task: string;
  /** Always empty: no placement hands over context yet. */
  context?: [];
}

/** The folder that a task works in. A page reaches `opfs` and `handle`, a machine `machine`. */
export type RootDescriptor =
  | { kind: "opfs"; path: string }
  | { kind: "handle"; id: string; label?: string }
  | { kind: "machine"; path: string; environment?: string };

export type TaskState =
  | "queued"
  | "running"
  | "cancel_requested"
  | "cancelled"
  | "cancel_unconfirmed"
  | "completed"
  | "failed"
  | "interrupted";

/** How a task ended and who says so. An executor only claims. */
export interface Outcome {
  class: "claimed-complete" | "observed-failure" | "observed-interruption" | "observed-cancellation";
  basis: "executor-claimed" | "host-observed";
}

/** What the owner of a task is shown. */
export interface TaskView {
  /** What the owner asks with: sealed, and good for this owner alone. */
  address: string;
  environment: string;
  placement: Placement | null;
  root: RootDescriptor;
  state: TaskState;
  agent: string;
  /** ISO 8601. */
  createdAt: string;
  /** ISO 8601. */
  updatedAt: string;
  /** Why it ended as it did: a refusal code. */
  reason?: string;
  /** The answer, without secrets; it may be empty. */
  answer?: string;
  /** The executor's last note, without secrets. */
  progress?: string;
  /** What there is of an answer. */
  partial?: string;
  outcome?: Outcome;
  /** Another life of the page has the task, and nobody knows whether that life goes on. */
  stale?: true;
  staleReason?: "generation-unconfirmed";
}

/** All that is recorded of a task. It does not leave the host. */
export interface TaskRecord extends Omit<TaskView, "agent" | "stale" | "staleReason" | "placement"> {
  placement?: Placement;
  owner: string;
  project: string;
  instance: string;
  callId: string;
  input: Required<TaskInput>;
  bounds: TaskBounds;
  mechanism: string;
  boot: string;
  pid?: number;
}

/** One entry of a log of tasks. Entries of other kinds may share the log. */
export interface LogEntry {
  kind: "task";
  /** Position: strictly increasing for each task. */
  seq: number;
  instance: string;
  project: string;
  /** {@link rootContainment} of the task's root. */
  root: string;
  turn: string;
  /** ISO 8601. */
  at: string;
  task: {
    address: string;
    state: TaskState;
    /** The whole record, in the entry that creates the task. */
    created?: TaskRecord;
    reason?: string;
    answer?: string;
    progress?: string;
    partial?: string;
  };
}

/** Who calls. Comes from whoever authenticated the caller, never from the caller's arguments. */
export interface Caller {
  /** Opaque identity, not blank. */
  owner?: string;
  /** 1 to 160 letters, digits, `.`, `_`, `:` or `-`. The same id with the same task is the same call. */
  callId?: string;
}

export type Delegated = { ok: true; task: TaskView; existing: boolean };
export type Status = { ok: true; task: TaskView };
/** `observed`: whether the task was seen to end. */
export type Cancelled = { ok: true; state: TaskState; observed: boolean };

/** Serves the tasks of one environment, here or far away. */
export interface TaskHost {
  readonly placement: Placement | null;
  readonly environment: string | null;
  /** Admits a task, unless this call id has one. It runs once, after this has answered. */
  call(tool: "delegate_task", args: TaskInput, caller: Caller): Promise<Delegated | Refusal>;
  call(tool: "task_status", args: { address: string }, caller: Caller): Promise<Status | Refusal>;
  /** Tells a task to stop, and waits up to 1,500 ms to see it. */
  call(tool: "cancel_task", args: { address: string }, caller: Caller): Promise<Cancelled | Refusal>;
  call(tool: string, args: unknown, caller: Caller): Promise<Delegated | Status | Cancelled | Refusal>;
}

export interface BrowserTaskHost extends TaskHost {
  readonly placement: "browser";
  readonly environment: string;
  /**
   * Whether tasks outlive this page and can still be asked for. Before the host is open (see `ready`) it is what is
   * expected; `false` in memory, and `false` in a storage object without `keyBytes`, whose key is forgotten.
   */
  readonly persistent: boolean;
  /** Opens the key and the journal, which the first call does otherwise. */
  ready(): Promise<{ ok: true; persistent: boolean } | Refusal>;
}

/** What an executor is asked before a task is admitted. */
export interface ExecutorCheck {
  input: Required<TaskInput>;
  root: RootDescriptor;
  environment: string;
  placement: "browser";
}

/** A task to be run, as it was admitted. */
export interface ExecutorRun {
  input: Required<TaskInput>;
  bounds: TaskBounds;
  root: RootDescriptor;
  /** Aborted when the task is cancelled or its deadline passes. */
  signal: AbortSignal;
  /** Says how far it is. The latest text that is not blank counts, cut to {@link NOTE_MAX_CHARS} characters. */
  report(note: string): void;
  /** Says what there is of an answer. It takes the place of the earlier one. */
  partial(text: string): void;
}

export interface Executor {
  /**
   * Whether it takes the task, and within which bounds. Answers at once: a promise is refused as
   * `unbounded-executor`. A code that is none of {@link refusalCodes} becomes `unbounded-executor`, with the code in
   * `why`.
   */
  check(asked: ExecutorCheck):
    | { ok: true; mechanism: string; bounds: TaskBounds }
    | { ok: false; refused?: string; why?: string };
  /**
   * Runs it. What it throws ends the task: `refused: "task-cancelled"` or an `AbortError` as cancelled, if that was
   * asked for; `refused` with another known code as failed for that reason; anything else as `executor-failed`, with
   * its message as the last note. The task holds its place until this has settled, whatever its state.
   */
  run(task: ExecutorRun): Promise<string> | string;
}

/** What is used of `localStorage`. It must write at once: a storage of promises takes nothing. */
export interface StorageArea {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  key(index: number): string | null;
  readonly length: number;
}

export interface BrowserTaskHostOptions {
  /** Name of the environment that this host is. Default `"env_browser_local"`. */
  environment?: string;
  /** The writer of log entries. Default `"browser-tab"`. */
  instance?: string;
  /** Name of this life of the page: one that no other life has. Default: a random one. */
  boot?: string;
  /** The folder of new tasks, or a function that answers it. Default `{kind: "opfs", path: "v1/tasks"}`. */
  root?: RootDescriptor | (() => RootDescriptor | null | undefined);
  /** What executes tasks, or a function that answers it; it is asked once for each delegation. */
  executor?: Executor | null | (() => Executor | null | undefined);
  /** At least 32 bytes that seal addresses. Default: a random key, kept in the database where one is used. */
  keyBytes?: Uint8Array | ArrayBuffer;
  /** The project that tasks belong to. Default `"browser-project"`. */
  project?: string;
  /**
   * Where tasks are kept: the name of an IndexedDB database, `"memory"`, or an object like `localStorage` (keys
   * `vb_task_<address>` and `vb_call_<call>`). Default: the database `"toolshelf-host"`; without IndexedDB
   * `localStorage`; without both the memory of this page, which all such hosts share.
   */
  storage?: string | StorageArea | null;
}

/**
 * A task host in this page, worker or process. Returns at once; its key and its journal are opened by the first call.
 *
 * @throws TypeError for a `storage` that is none.
 */
export function createBrowserTaskHost(options?: BrowserTaskHostOptions): BrowserTaskHost;

/** An environment by its name, or by its descriptor; `key` wants the host of that very environment. */
export type EnvironmentTarget = string | { key?: string; kind?: string; reach?: string };

export type PlacementHosts<H extends TaskHost = TaskHost> = Partial<Record<Placement, H>>;

export interface PlacementDispatcher<H extends TaskHost = TaskHost> {
  /** The host for an environment; `placement-unavailable` or `environment-mismatch` where there is none. */
  dispatch(environment: EnvironmentTarget): { ok: true; placement: Placement; host: H } | Refusal;
  /** Calls that host. */
  call(
    environment: EnvironmentTarget,
    tool: string,
    args: unknown,
    caller: Caller,
  ): Promise<Delegated | Status | Cancelled | Refusal>;
}

/** Goes from an environment straight to the host of its placement. Takes the map itself, or `{hosts: map}`. */
export function createPlacementDispatcher<H extends TaskHost = TaskHost>(
  hosts: PlacementHosts<H> | { hosts: PlacementHosts<H> },
): PlacementDispatcher<H>;

/** The tools of a task host. */
export const TASK_TOOLS: readonly ["delegate_task", "task_status", "cancel_task"];
export const TASK_STATES: readonly TaskState[];

/** The placement of an environment; `null` for one that is unknown. `reach: "paired"` is remote, whatever its kind. */
export function placementForEnvironment(environment: EnvironmentTarget): Placement | null;

/** Checks bounds against those of a placement; `unbounded-executor` for those beyond. */
export function validatePlacementBounds(
  placement: Placement | string,
  bounds: unknown,
): { ok: true; bounds: TaskBounds } | Refusal;

/** Reads what a caller asks; the first rule that is broken gives the refusal. */
export function taskInput(args: unknown): { ok: true; value: Required<TaskInput> } | Refusal;

/** The bounds, if any placement could grant them; otherwise `null`. */
export function taskBounds(bounds: unknown): TaskBounds | null;

/**
 * The record of the task at `address`, out of a log in any order; `null` when the log does not know it.
 *
 * @throws Error with one of these messages when the log contradicts itself: `duplicate task event position`,
 * `invalid task creation`, `task event without a live admission`, `invalid task transition`,
 * `task writer or root mismatch`.
 */
export function reduceTask(entries: readonly unknown[], address: string): TaskRecord | null;

/**
 * What the owner of a task is shown of its record.
 *
 * @throws Error for a value that is no record.
 */
export function taskView(record: TaskRecord): TaskView;

/** How a task of that state (or that record or view) has ended; `null` while it has not. */
export function outcomeFor(task: TaskState | { state: TaskState }): Outcome | null;

/**
 * `opfs:<path>`, `picked:<id>` or `machine:<path>`; `root-not-declared` for what is no root and, where a placement is
 * given, `root-not-reachable-from-here`.
 */
export function rootContainment(root: unknown, placement?: Placement): string | Refusal;

/** A text without its secrets; in Node those in environment variables too. What is no text is answered as it is. */
export function redactSecrets<T>(text: T): T;

/** A JSON value without its secrets. What stands under a secret name goes as a whole. */
export function redactObject(value: unknown): unknown;

// ----------------------------------------------------------------------------------------------------------- Ports

/** A `MessagePort`, a worker, or `self` inside of one; in Node also those of `node:worker_threads`. */
export interface PortLike {
  postMessage(message: unknown): void;
}

/**
 * Lets the other end of a port call a host. `owner` is who calls, whatever a frame says: give each port its own.
 * A frame that is none gets `invalid-argument`, the 65th open call of a port `over-budget`.
 *
 * @throws TypeError without a host, a port or an owner.
 */
export function serveTaskHost(host: TaskHost, port: PortLike, options: { owner: string }): { close(): void };

/** A host at the other end of a port. */
export interface RemoteTaskHost extends TaskHost {
  readonly persistent: boolean;
  /** Waits for the other end's greeting, after which `placement` and `environment` are known. */
  ready(): Promise<{ ok: true; persistent: boolean } | Refusal>;
  /** Ends all open calls with `placement-unavailable`, and closes the port. */
  close(): void;
}

/**
 * Calls the host that the other end of a port serves. A port that closes, and an answer that does not come in time,
 * give `placement-unavailable`; whether a task was admitted then is asked by the same call with the same id.
 *
 * @throws TypeError for what is no port.
 */
export function connectTaskHost(
  port: PortLike,
  options?: {
    /** How long a call waits for its answer, in milliseconds. Default 30,000. */
    timeoutMs?: number;
  },
): RemoteTaskHost;

// ----------------------------------------------------------------------------------------------------------- Tools

/** Wall-clock deadline of one call, in milliseconds. */
export const WASM_CALL_DEADLINE_MS: number;
/** Largest module, in bytes. */
export const WASM_MODULE_MAX_BYTES: number;
/** Most bytes that a worker may hand back. */
export const WASM_CHILD_MAX_STDOUT_BYTES: number;
/** Age at which a worker process ends itself, in milliseconds. */
export const WASM_CHILD_WATCHDOG_MS: number;
/** Ceiling of a module's linear memory, in bytes. It is written into the module. */
export const WASM_MEMORY_MAX_BYTES: number;
/** Calls that run at the same time. */
export const WASM_MAX_CONCURRENT_WORKERS: number;
/** Calls that may wait; one more is refused as `over-budget`. */
export const WASM_MAX_QUEUE_DEPTH: number;
/** Largest `manifest.json`, in bytes. */
export const MANIFEST_MAX_BYTES: number;
/** Most tools of one shelf. */
export const SHELF_MAX_TOOLS: number;
/** Longest task, in bytes. */
export const TASK_MAX_BYTES: number;
/** Longest name of an agent, in characters. */
export const AGENT_MAX_CHARS: number;
/** Longest call id, in characters. */
export const CALL_ID_MAX_CHARS: number;
/** Longest address of a task, in characters. */
export const ADDRESS_MAX_CHARS: number;
/** Longest note of progress, in characters. */
export const NOTE_MAX_CHARS: number;

/** Where the inputs and the output of a tool lie in its memory. */
export const MEASURED_ABI: Readonly<Record<"hash" | "diff", Readonly<Record<string, unknown>>>>;
/** Names of the fixed commands of a live session, for `liveToolDeclarations`. */
export const RESERVED_NAMES: readonly string[];

/** One entry of a shelf: admitted, or refused with the reason. */
export interface ShelfTool {
  id: string;
  digest: string | null;
  admitted: boolean;
  wasmPath: string;
  description: string;
  capability: string;
  refused?: string;
  why?: string;
  abi?: Record<string, unknown> | null;
  note?: string;
  /** Key of the shelf that it is on. */
  shelf?: string;
  [more: string]: unknown;
}

export interface Shelf {
  ok: true;
  dir: string;
  name: string;
  version: string;
  tools: ShelfTool[];
  [more: string]: unknown;
}

/** Reads and judges all shelves of this page, or the one of that key: each module is hashed again. */
export function readShelf(key?: string): Promise<Shelf | Refusal>;

/** One step of a diff. Lines are counted from zero. */
export interface DiffBlock {
  op: "equal" | "delete" | "insert" | number;
  aLine: number;
  aCount: number;
  bLine: number;
  bCount: number;
}

export interface ToolAnswer {
  ok: true;
  action: "wasm";
  tool: string;
  /** What the export returned. */
  returned: number;
  /** The output in hexadecimal digits. */
  output: string;
  /** The steps of a diff. */
  blocks?: DiffBlock[];
  /** SHA-256 of the bytes that ran. */
  digest: string;
  inputBytes: number;
  /** Wall-clock time of the whole call, in milliseconds. */
  durationMs: number;
  /** Where the time went, in milliseconds. */
  timing: { verifyMs: number; queueMs: number; workerMs: number; runMs: number };
}

/**
 * Calls a tool, in a worker that is used once and ended after {@link WASM_CALL_DEADLINE_MS}. Arguments are texts, bytes
 * or `Blob`s: `{input}` for `hash`, `{a, b}` for `diff`.
 */
export function callWasmTool(
  id: string,
  args?: Record<string, string | ArrayBuffer | ArrayBufferView | Blob | unknown>,
): Promise<ToolAnswer | Refusal>;

export interface ToolDeclaration {
  name: string;
  description: string;
  /** A JSON schema of the arguments. */
  parameters: Record<string, unknown>;
}

/** What a live session or a model is told of the tools; those with a reserved name are left out. */
export function liveToolDeclarations(reservedNames?: readonly string[]): Promise<ToolDeclaration[]>;

/** The extension descriptors of all tools that can be called. */
export function descriptors(): Promise<Record<string, unknown>[]>;

export type ShelfFiles =
  | Record<string, string | ArrayBuffer | ArrayBufferView | Blob>
  | readonly (File | { path: string; content: string | ArrayBuffer | ArrayBufferView | Blob })[]
  | FileList;

/** Adds a shelf: `manifest.json` and the modules that it names. One of the same name is replaced. */
export function addShelf(files: ShelfFiles): Promise<(Shelf & { stored: number; replaced: boolean }) | Refusal>;

/** Removes a shelf by its key, the `dir` that `addShelf` answered. */
export function removeShelf(key: string): Promise<{ ok: true; dir: string; name: string } | Refusal>;

/**
 * An executor that runs the tools of the shelf: the agent is the tool's id, the task its input or a JSON object of
 * arguments. `{"file": "<path>"}` reads an argument from the task's root and `"out": "<path>"` writes the answer there,
 * where the browser has a private file system. Hosts of this package wait for the shelf to open; anybody else awaits
 * `ready` before `check`.
 */
export function createShelfExecutor(): Executor & { readonly ready: Promise<void> };
