//! The clients that `toolshelf mcp install` knows: where each has its configuration, and how it writes a server down.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Gemini CLI
    Gemini,
    /// LM Studio
    LmStudio,
}

impl Client {
    /// Every client.
    #[cfg(test)]
    pub(super) const ALL: [Self; 8] = [
        Self::Claude,
        Self::ClaudeDesktop,
        Self::Vscode,
        Self::Cursor,
        Self::Windsurf,
        Self::Zed,
        Self::Gemini,
        Self::LmStudio,
    ];

    /// What people call it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Vscode => "Visual Studio Code",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
            Self::LmStudio => "LM Studio",
        }
    }

    /// The file, from the person's home folder and the folder of configurations.
    pub(super) fn file(self, home: &Path, config: &Path) -> PathBuf {
        let support = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            config.to_owned()
        };
        match self {
            Self::Claude => home.join(".claude.json"),
            Self::ClaudeDesktop => support.join("Claude/claude_desktop_config.json"),
            Self::Vscode => support.join("Code/User/mcp.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            // Zed keeps to ~/.config also on macOS.
            Self::Zed if cfg!(target_os = "macos") => home.join(".config/zed/settings.json"),
            Self::Zed => config.join("zed/settings.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::LmStudio => home.join(".lmstudio/mcp.json"),
        }
    }

    /// The field of the file that holds servers.
    pub(super) fn servers(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// What a server's entry begins with, beside its command.
    pub(super) fn kind(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Claude | Self::Vscode => Some(("type", "stdio")),
            Self::Zed => Some(("source", "custom")),
            _ => None,
        }
    }
}
