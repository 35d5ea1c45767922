//! The page's program as one script that needs no other file: the glue, the splitter's script, and all modules,
//! compressed and in Base64.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::app::{LINK, NAME};

/// Slowest and smallest.
const DEFLATE_LEVEL: u8 = 10;

/// What the other parts call for a module. Base64 has no letter that would end a string.
const UNPACK: &str = r#"const unpacked = (name) => {
  const bytes = Uint8Array.from(atob(packed[name]), (letter) => letter.charCodeAt(0));
  const module = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return Promise.resolve(new Response(module, { headers: { "content-type": "application/wasm" } }));
};
"#;

/// The script. `load` reads a file of the program's folder.
pub(crate) fn script(load: impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let text = |name: &str| Ok::<_, anyhow::Error>(String::from_utf8(load(name)?)?);
    let Chunks { script: loaders, exports, modules } = chunks(&text(LINK)?)?;
    let glue = glue(&text(&format!("{NAME}.js"))?, &exports)?;
    let main = format!("{NAME}_bg.wasm");
    let mut packed = String::new();
    for module in std::iter::once(&main).chain(&modules) {
        let bytes =
            BASE64_STANDARD.encode(miniz_oxide::deflate::compress_to_vec(&load(module)?, DEFLATE_LEVEL));
        packed += &format!("{module:?}: \"{bytes}\",\n");
    }
    let start = format!(
        "await __wbg_init({{ module_or_path: unpacked({main:?}) }});\n\
         dispatchEvent(new Event(\"TrunkApplicationStarted\"));\n"
    );
    Ok(format!("const packed = {{\n{packed}}};\n{UNPACK}{loaders}{glue}{start}"))
}

/// The splitter's script, without imports and exports.
#[derive(Debug)]
struct Chunks {
    script: String,
    exports: Vec<String>,
    modules: Vec<String>,
}

fn chunks(script: &str) -> Result<Chunks> {
    const FETCH: &str = "fetch(new URL(\"./";
    let (mut text, mut exports, mut modules) = (String::new(), Vec::new(), Vec::new());
    for line in script.lines().filter(|line| !line.starts_with("import ")) {
        let line = match line.strip_prefix("export const ") {
            Some(rest) => {
                exports.push(rest.split_whitespace().next().unwrap_or_default().to_owned());
                &line["export ".len()..]
            }
            None => line,
        };
        match line.split_once(FETCH) {
            Some((before, rest)) => {
                let (module, rest) = rest.split_once('"').context("a chunk has no name")?;
                let (_, after) = rest.split_once("})").context("a chunk has no digest")?;
                modules.push(module.to_owned());
                text += &format!("{before}unpacked({module:?}){after}\n");
            }
            None => text += &format!("{line}\n"),
        }
    }
    let left = text.contains("fetch(") || text.contains("import.meta") || text.contains("\nexport ");
    ensure!(!left, "the script of the chunks needs other files");
    Ok(Chunks { script: text, exports, modules })
}

/// The glue that wasm-bindgen wrote, without imports and exports.
fn glue(glue: &str, exports: &[String]) -> Result<String> {
    let mut script = String::new();
    for line in glue.lines().filter(|line| !line.starts_with("export {")) {
        let import = line.strip_prefix("import * as ").and_then(|import| import.split_once(" from "));
        match import {
            Some((name, from)) if from.contains(LINK) => {
                script += &format!("const {name} = {{ {} }};\n", exports.join(", "));
            }
            _ => {
                script += line.strip_prefix("export ").unwrap_or(line);
                script.push('\n');
            }
        }
    }
    let whole = !script.lines().any(|line| line.starts_with("import ") || line.starts_with("export "))
        && !script.contains("import(");
    ensure!(whole && script.contains("function __wbg_init("), "the glue of the app needs other files");
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADERS: &str = "import { initSync } from \"./app.js\";\nlet shared;\n\
        export const __wasm_split_load_x = wrap(() => {\n    \
        const src = fetch(new URL(\"./split_x.wasm\", import.meta.url), { integrity: \"sha384-a\" });\n}, []);\n";
    const GLUE: &str = "import * as import1 from \"./__wasm_split.js\"\nexport class A {}\n\
        function __wbg_init() {}\nexport { __wbg_init as default };\n";

    #[test]
    fn chunks_come_from_the_script_itself() {
        let Chunks { script, exports, modules } = chunks(LOADERS).unwrap();
        assert_eq!((&*exports[0], &*modules[0]), ("__wasm_split_load_x", "split_x.wasm"));
        assert!(script.contains("const src = unpacked(\"split_x.wasm\");"), "{script}");
        assert!(!script.contains("import") && !script.contains("export"), "{script}");
    }

    #[test]
    fn the_whole_program_is_one_script_without_imports() {
        let load = |name: &str| {
            Ok(match name {
                "app.js" => GLUE.as_bytes().to_vec(),
                "__wasm_split.js" => LOADERS.as_bytes().to_vec(),
                _ => b"\0asm".to_vec(),
            })
        };
        let script = script(load).unwrap();
        assert!(script.contains("const import1 = { __wasm_split_load_x };\nclass A {}\n"), "{script}");
        assert!(
            script.contains("\"app_bg.wasm\": \"") && script.contains("\"split_x.wasm\": \""),
            "{script}"
        );
        assert!(!script.contains("import ") && !script.contains("export "), "{script}");
    }

    #[test]
    fn glue_that_needs_other_files_is_refused() {
        let start = "function __wbg_init() {}";
        for text in
            ["", &format!("import {{ a }} from './a.js';\n{start}"), &format!("{start}\nimport('./a.js')")]
        {
            assert!(glue(text, &[]).is_err(), "{text}");
        }
        assert!(chunks("const src = fetch(\"./x\");").is_err());
    }
}
