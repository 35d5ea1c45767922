//! The Live panel: a person types, and what answers calls tools: the page's script, the browser's model, the companion
//! with its script, and the companion with a provider's model.

use anyhow::{Context as _, Result};
use e2e::{Browser, Companion, Page};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use thirtyfour::Key;
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use super::access::{assert_accessible, press, tab_to};
use super::delegating::before_each_page;
use super::person::{count, text};

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const CALL: &str = ".live__call";

async fn open() -> Result<Page> {
    let page = Page::start().await?;
    page.open("#/live").await?;
    ready(&page).await?;
    Ok(page)
}

/// Waits until the panel is there and the shelf behind it.
async fn ready(page: &Browser) -> Result<()> {
    page.wait_for("#live-text").await?;
    page.wait_until("the shelf", "return !!globalThis.toolshelf", vec![]).await
}

/// Types a text and sends it.
async fn say(page: &Browser, text: &str) -> Result<()> {
    let field = page.wait_for("#live-text").await?;
    field.send_keys(text).await?;
    field.send_keys(Key::Enter).await.map_err(Into::into)
}

/// Chooses who answers.
async fn choose(page: &Browser, at: usize) -> Result<()> {
    let radio = format!(".live__who label:nth-of-type({at}) input:not(:disabled)");
    // The button itself is drawn by its label.
    let there = "return !!document.querySelector(arguments[0])";
    page.wait_until("the choice", there, vec![radio.clone().into()]).await?;
    page.run_js("document.querySelector(arguments[0]).click()", vec![radio.into()]).await.map(drop)
}

/// Puts a text into the field at once, as pasting does, and sends it.
async fn paste(page: &Browser, text: &str) -> Result<()> {
    let script = "const field = document.querySelector('#live-text');
        field.value = arguments[0];
        field.dispatchEvent(new Event('input', { bubbles: true }));
        field.form.requestSubmit()";
    page.run_js(script, vec![text.into()]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_the_page_calls_tools_without_any_server() -> Result<()> {
    let page = open().await?;
    page.wait_for_text(".teach", "Say what you want done").await?;
    // An example is a click away.
    page.wait_for(".live__examples button").await?.click().await?;
    page.wait_for(CALL).await?;
    page.wait_for_text(CALL, "ok").await?;
    assert!(text(&page, &format!("{CALL} .lat")).await?.ends_with("ms"));
    assert_eq!(text(&page, &format!("{CALL} .digest")).await?, HELLO);
    page.wait_for_text(".live__lines", "hash of 5 bytes").await?;

    say(&page, "diff \"a\\nb\\n\" \"a\\nc\\n\"").await?;
    page.wait_for(&format!("{CALL}[data-call='diff'] .diff")).await?;
    // What cannot be understood, and what is refused, say so.
    say(&page, "make me a sandwich").await?;
    page.wait_for_text(".live__lines", "did not understand").await?;
    paste(&page, &format!("hash {}", "x".repeat(9_000))).await?;
    page.wait_for_text(&format!("{CALL}[data-state='refused']"), "over-budget").await?;
    // What a person types is text and nothing else.
    paste(&page, "<img src=x onerror=alert(1)>\u{202e}").await?;
    page.wait_for_text(".live__lines", "<img src=x").await?;
    assert_eq!(count(&page, ".live__lines img").await?, 0);
    assert!(!text(&page, ".live__lines ol").await?.contains('\u{202e}'));
    let calls = "return performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith(origin) && !/^(data|blob):/.test(name)).length";
    assert_eq!(page.run_js(calls, vec![]).await?, 0);

    // The same tool's row knows of the call, and the conversation is there after a look at it.
    page.run_js("location.hash = '#/extensions'", vec![]).await?;
    page.wait_for_text(".tool[data-tool='diff']", "last run ok").await?;
    page.run_js("location.hash = '#/live'", vec![]).await?;
    page.wait_for(CALL).await?;
    assert_eq!(count(&page, CALL).await?, 3);
    page.assert_clean().await?;
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_suffices_and_what_is_cleared_comes_back() -> Result<()> {
    let page = open().await?;
    tab_to(&page, "#live-text").await?;
    press(&page, "hash hello").await?;
    press(&page, Key::Enter).await?;
    page.wait_for_text("[data-announcement]", HELLO).await?;
    // The last words come back with an arrow.
    press(&page, Key::Up).await?;
    let draft = page.run_js("return document.querySelector('#live-text').value", vec![]).await?;
    assert_eq!(draft, "hash hello");
    press(&page, Key::Enter).await?;
    page.wait_until("two calls", "return document.querySelectorAll('.live__call').length === 2", vec![])
        .await?;

    page.wait_for(".live__tools button:last-of-type").await?.click().await?;
    page.wait_for(".teach").await?;
    page.wait_for_text(".toast", "Cleared").await?;
    page.wait_for(".toast button").await?.click().await?;
    page.wait_until("both calls", "return document.querySelectorAll('.live__call').length === 2", vec![])
        .await?;
    // The transcript is what was said and what came back.
    page.devtools(
        "Browser.grantPermissions",
        json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }),
    )
    .await?;
    page.wait_for(".live__tools .copy").await?.click().await?;
    page.wait_for_text("[data-announcement]", "Copied").await?;
    let copied = page.run_async_js("return await navigator.clipboard.readText()", vec![]).await?;
    let copied = copied.as_str().context("the clipboard holds a text")?;
    assert!(copied.starts_with("You: hash hello\n\n[hash, ok, "), "{copied}");
    assert!(copied.contains(HELLO), "{copied}");
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_panel_is_accessible_at_both_widths() -> Result<()> {
    let page = open().await?;
    for width in [1280, 320] {
        page.set_viewport(width, 900).await?;
        assert_accessible(&page, "an empty conversation").await?;
    }
    say(&page, "hash hello").await?;
    page.wait_for(CALL).await?;
    say(&page, "diff \"a\\nb\\n\" \"a\\nc\\n\"").await?;
    page.wait_for(".diff").await?;
    paste(&page, &format!("hash {}", "x".repeat(9_000))).await?;
    page.wait_for(&format!("{CALL}[data-state='refused']")).await?;
    for width in [1280, 320] {
        page.set_viewport(width, 900).await?;
        assert_accessible(&page, "a conversation").await?;
    }
    page.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browsers_model_calls_tools_where_there_is_one() -> Result<()> {
    let page = open().await?;
    // This browser has none, and the panel says so.
    page.wait_for_text(".live__who", "no model of its own").await?;
    assert_eq!(count(&page, ".live__who label:nth-of-type(2) input:disabled").await?, 1);

    // An object in its place, which answers as the schema of the prompt wants it.
    let model = "
        const value = class {
            static async availability() { return 'available'; }
            static async create(options) { globalThis.created = options; return new this(); }
            async prompt(text, { responseConstraint }) {
                globalThis.constraint = responseConstraint;
                if (text.includes('for ever')) return JSON.stringify({ tool: 'hash', arguments: { input: 'x' } });
                if (text === 'digest of hello') return JSON.stringify({ tool: 'hash', arguments: { input: 'hello' } });
                const { ok, output } = JSON.parse(text);
                return text.includes('\"x\"') ? '' : JSON.stringify({ say: ok ? 'It is ' + output : 'no' });
            }
            destroy() {}
        };
        Object.defineProperty(globalThis, 'LanguageModel', { value, configurable: true })";
    before_each_page(&page, model).await?;
    page.goto("about:blank").await?;
    page.open("#/live").await?;
    ready(&page).await?;
    choose(&page, 2).await?;
    say(&page, "digest of hello").await?;
    page.wait_for_text(".live__lines", &format!("It is {HELLO}")).await?;
    assert_eq!(text(&page, &format!("{CALL} .digest")).await?, HELLO);
    let constraint = page.run_js("return constraint.properties.tool.enum", vec![]).await?;
    assert_eq!(constraint, json!(["hash", "diff", "diff-loose"]));
    page.quit().await
}

/// A browser that looks at the Live panel of a companion.
async fn visit(companion: &Companion) -> Result<Browser> {
    let browser = Browser::start().await?;
    browser.goto(&companion.link()).await?;
    browser.wait_for(".machine .tool__open").await?;
    browser.run_js("location.hash = '#/live'", vec![]).await?;
    ready(&browser).await?;
    choose(&browser, 3).await?;
    Ok(browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_companions_script_answers_in_a_session_of_its_own() -> Result<()> {
    let companion = Companion::start().await?;
    let browser = visit(&companion).await?;
    say(&browser, "hash hello").await?;
    browser.wait_for_text(CALL, "on the companion").await?;
    assert_eq!(text(&browser, &format!("{CALL} .digest")).await?, HELLO);
    browser.wait_for_text(".live__lines", "hash of 5 bytes").await?;
    // Calls of others are no part of the conversation.
    companion.hash("something else").await?;
    say(&browser, "list").await?;
    browser.wait_for_text(".live__lines", "diff-loose: ").await?;
    assert_eq!(count(&browser, CALL).await?, 1);
    browser.quit().await
}

/// A provider that speaks OpenAI Realtime: it calls `hash` for each text, and says what came back in two parts.
async fn provider() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp));
        }
    });
    Ok(port)
}

async fn serve(tcp: tokio::net::TcpStream) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_async(tcp).await.ok()?;
    let (mut asked, mut count) = (None::<String>, 0);
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(message) = message else { continue };
        let event: Value = serde_json::from_str(&message).ok()?;
        let item = &event["item"];
        let mut events = Vec::new();
        match event["type"].as_str()? {
            "session.update" => events.push(json!({"type": "session.updated", "session": event["session"]})),
            "conversation.item.create" => {
                asked = item["content"][0]["text"].as_str().or(item["output"].as_str()).map(str::to_owned);
            }
            "response.cancel" => events.push(json!({
                "type": "response.done", "response": {"id": format!("r{count}"), "status": "cancelled", "output": []}
            })),
            "response.create" => {
                count += 1;
                let id = format!("r{count}");
                let words = |text: &str| json!({"type": "response.output_text.delta", "response_id": id, "delta": text});
                events.push(json!({"type": "response.created", "response": {"id": id}}));
                let asked = asked.take()?;
                let result: Option<Value> = serde_json::from_str(&asked).ok();
                if asked == "a long story" {
                    events.push(words("Once upon a time"));
                } else {
                    match result {
                        Some(result) => {
                            events.push(words("It is "));
                            events.push(words(result["output"].as_str().unwrap_or("refused")));
                        }
                        None => events.push(json!({
                            "type": "response.output_item.done", "response_id": id,
                            "item": {"type": "function_call", "status": "completed", "call_id": format!("c{count}"),
                                "name": "hash", "arguments": json!({"input": asked}).to_string()}
                        })),
                    }
                    events.push(json!({"type": "response.done", "response": {"id": id, "status": "completed", "output": []}}));
                }
            }
            _ => {}
        }
        for event in events {
            socket.send(Message::text(event.to_string())).await.ok()?;
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_model_answers_through_the_companion_and_can_be_stopped() -> Result<()> {
    let port = provider().await?;
    let live = format!(
        "[live]\nprovider = \"openai-realtime\"\nmodel = \"gpt-test\"\nurl = \"ws://127.0.0.1:{port}/\""
    );
    let companion = Companion::start_with(&live).await?;
    let browser = visit(&companion).await?;
    say(&browser, "hello").await?;
    browser.wait_for_text(".live__lines", &format!("It is {HELLO}")).await?;
    browser.wait_for_text(CALL, "on the companion").await?;
    browser.wait_for_text("#live-about", "gpt-test (openai-realtime)").await?;
    assert_eq!(count(&browser, CALL).await?, 1);
    assert_eq!(count(&browser, ".live__wait").await?, 0);

    say(&browser, "a long story").await?;
    browser.wait_for_text(".live__lines", "Once upon a time").await?;
    press(&browser, Key::Escape).await?;
    browser.wait_for_text(".live__lines", "Interrupted").await?;
    say(&browser, "hello").await?;
    browser
        .wait_until("two calls", "return document.querySelectorAll('.live__call').length === 2", vec![])
        .await?;
    // The key is nowhere in the page.
    let kept = "return document.documentElement.outerHTML + JSON.stringify(localStorage)";
    let kept = browser.run_js(kept, vec![]).await?;
    assert!(!kept.as_str().context("a text")?.contains("a-key-of-a-test"));
    assert_accessible(&browser, "a conversation with a model").await?;
    browser.quit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_there_is_told_by_name() -> Result<()> {
    let live = "[live]\nprovider = \"openai-realtime\"\nurl = \"ws://127.0.0.1:9/\"";
    let companion = Companion::start_with(live).await?;
    let browser = visit(&companion).await?;
    say(&browser, "hello").await?;
    browser.wait_for_text(".live__lines .note--bad", "upstream-failed").await?;
    browser.wait_until("no wait", "return !document.querySelector('.live__wait')", vec![]).await?;
    browser.quit().await
}
