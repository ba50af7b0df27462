//! Colour, or none. Everything reads as well without it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Coloured,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Good,
    Doubtful,
    Bad,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "1;32",
            Self::Doubtful => "1;33",
            Self::Bad => "1;31",
        }
    }
}

impl Style {
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code()),
        }
    }
}
