// A task host at the other end of a port.
//
// Frames: a call {toolshelf: 1, id, tool, args, callId?}, a greeting {toolshelf: 1, id, hello: true}, an answer
// {toolshelf: 1, id, answer}, and a farewell {toolshelf: 1, bye: true}. Whoever serves says who the owner is.

import { refusal, refusalOf, wireArguments } from "./core.js";

const PROTOCOL = 1;
/** Calls of one port that may be open at the same time. */
const MAX_OPEN = 64;
const FIELDS = ["toolshelf", "id", "tool", "args", "callId", "hello"];

export function serveTaskHost(host, port, options) {
  const owner = options?.owner;
  if (typeof host?.call !== "function") throw new TypeError("`host` must be a task host");
  if (typeof owner !== "string" || owner.trim() === "") throw new TypeError("`owner` must say who calls through this port");
  let open = 0;

  const say = (frame) => port.postMessage({ toolshelf: PROTOCOL, ...frame });
  const answer = (id, said) => {
    try {
      say({ id, answer: said });
    } catch (thrown) {
      say({ id, answer: refusalOf(thrown, "task-admission-failed") });
    }
  };
  const handle = async ({ tool, args, callId, hello }) => {
    if (hello) {
      await host.ready?.();
      const { placement, environment, persistent } = host;
      return { ok: true, placement, environment, persistent: persistent === true };
    }
    return host.call(tool, args, { owner, callId });
  };

  const stop = listen(port, {
    async message(frame) {
      // Two that serve each other would answer answers for ever.
      if (isOurs(frame) && ("answer" in frame || "bye" in frame)) return;
      const fault = faultOf(frame);
      if (fault) return answer(isId(frame?.id) ? frame.id : null, refusal("invalid-argument", fault));
      if (open >= MAX_OPEN) {
        return answer(frame.id, refusal("over-budget", `${MAX_OPEN} calls of this port are open already`));
      }
      open += 1;
      try {
        answer(frame.id, await handle(frame));
      } catch (thrown) {
        answer(frame.id, refusalOf(thrown, "task-admission-failed"));
      } finally {
        open -= 1;
      }
    },
    lost() {},
  });
  return Object.freeze({
    close() {
      stop();
      say({ bye: true });
      port.close?.();
    },
  });
}

export function connectTaskHost(port, options) {
  const timeoutMs = options?.timeoutMs ?? 30_000;
  const waiting = new Map();
  let lost;
  let known;
  let next = 1;

  const ask = (body) =>
    new Promise((resolve) => {
      if (lost) return resolve(lost);
      const id = next++;
      const settle = (answer) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(answer);
      };
      const late = () => settle(refusal("placement-unavailable", `no answer came through the port in ${timeoutMs} ms`));
      const timer = setTimeout(late, timeoutMs);
      waiting.set(id, settle);
      try {
        port.postMessage({ toolshelf: PROTOCOL, id, ...body });
      } catch (thrown) {
        settle(refusalOf(thrown, "placement-unavailable"));
      }
    });
  const lose = (why) => {
    lost ??= refusal("placement-unavailable", why);
    for (const settle of [...waiting.values()]) settle(lost);
  };

  const stop = listen(port, {
    message(frame) {
      if (!isOurs(frame)) return;
      if (frame.bye) return lose("the host at the other end of the port has said goodbye");
      const settle = waiting.get(frame.id);
      if (!settle || !("answer" in frame)) return;
      const isAnswer = typeof frame.answer?.ok === "boolean";
      settle(isAnswer ? frame.answer : refusal("placement-unavailable", "the answer has no form that is known"));
    },
    lost: () => lose("the port was closed"),
  });
  const greeting = ask({ hello: true }).then((answer) => {
    if (answer.ok) known = answer;
    return answer.ok ? { ok: true, persistent: answer.persistent } : answer;
  });

  return Object.freeze({
    get placement() {
      return known?.placement ?? null;
    },
    get environment() {
      return known?.environment ?? null;
    },
    get persistent() {
      return known?.persistent ?? false;
    },
    ready: () => greeting,
    async call(tool, args, caller) {
      const callId = caller?.callId;
      const body = { tool: String(tool), args: JSON.parse(wireArguments(args)) };
      return ask(typeof callId === "string" ? { ...body, callId } : body);
    },
    close() {
      stop();
      lose("the port was closed");
      port.close?.();
    },
  });
}

const isOurs = (frame) => typeof frame === "object" && frame !== null && frame.toolshelf === PROTOCOL;

const isId = (id) => (Number.isSafeInteger(id) && id >= 0) || (typeof id === "string" && /^[\w-]{1,64}$/.test(id));

/** What is wrong with a frame that wants an answer; nothing when it is well. */
function faultOf(frame) {
  if (!isOurs(frame) || !isId(frame.id)) return "a frame is {toolshelf: 1, id, tool, args, callId}";
  const foreign = Object.keys(frame).find((key) => !FIELDS.includes(key));
  if (foreign !== undefined) return `the field ${JSON.stringify(foreign.slice(0, 60))} is not a frame's`;
  if (frame.hello === true) return undefined;
  if (typeof frame.tool !== "string") return "`tool` must be a text";
  return ["string", "undefined"].includes(typeof frame.callId) ? undefined : "`callId` must be a text";
}

/** Listens to a port, a worker or the inside of one; answers how to stop. */
function listen(port, { message, lost }) {
  const heard = (event) => message(event.data);
  const events = { message: heard, messageerror: () => {}, close: lost, error: lost };
  if (typeof port?.addEventListener === "function") {
    for (const [name, listener] of Object.entries(events)) port.addEventListener(name, listener);
    port.start?.();
    return () => {
      for (const [name, listener] of Object.entries(events)) port.removeEventListener(name, listener);
    };
  }
  if (typeof port?.on !== "function") throw new TypeError("`port` must be a MessagePort or a worker");
  // A thread of Node, from outside.
  const threadEvents = { message, exit: lost, error: lost };
  for (const [name, listener] of Object.entries(threadEvents)) port.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(threadEvents)) port.off(name, listener);
  };
}
