//! A page before it is drawn: sections made of blocks.
//!
//! In: answers, put into words of one [`Lang`]. Out: [`Page`], which [`crate::render`] turns into
//! HTML. A command adds a section in a few lines:
//!
//! ```
//! use tandem_page::page::{Bar, Block, Page, Section, Table, Tone, Verdict};
//! use tandem_page::{Lang, render};
//!
//! let lang = Lang::Fa;
//! let mut page = Page::new(lang, lang.say("Comparison", "مقایسه"));
//! page.add(
//!     Section::new("compare", lang.say("Two runs", "دو اجرا"))
//!         .with(Verdict::new(Tone::Good, lang.say("no difference beyond noise", "تفاوتی بیش از نویز نیست")))
//!         .with(Table::new([lang.say("run", "اجرا"), lang.say("step", "گام")]).row(["`a`".into(), lang.seconds(0.15)]))
//!         .with(Block::Bars(vec![Bar::new("`a`", 0.15, lang.seconds(0.15))])),
//! );
//! assert!(render::html(&page).contains("dir=\"rtl\""));
//! ```

use crate::prose::Prose;
use tandem_plot::plot::Plot;
use tandem_units::Lang;

/// A page about one run, or about several.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub lang: Lang,
    /// Its heading, which is the window's title too.
    pub title: String,
    /// A line under the heading: which run, when.
    pub subtitle: Prose,
    /// What it says, in order.
    pub sections: Vec<Section>,
}

/// A part of a page with a heading of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Short and stable: links and the live page find it by this.
    pub id: String,
    pub title: String,
    /// What it holds, in order.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// One sentence that answers the question.
    Verdict(Verdict),
    /// The most important figures, large.
    Facts(Vec<Fact>),
    Text(Prose),
    Table(Table),
    /// A plot with its table.
    Figure(Figure),
    /// Bars to compare lengths.
    Bars(Vec<Bar>),
    /// A long table, collapsed under a title.
    Fold(String, Table),
    /// Lines to type, from left to right.
    Commands(Vec<String>),
    /// Pictures and sound of the run, by address. Only the live page has them.
    Samples(Vec<Sample>),
    /// Rows of a corpus to listen to and to decide on.
    Review(Review),
}

/// How good or bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    /// Could be better.
    Fair,
    /// Limits the run.
    Bad,
    /// Neither, or not known.
    Neutral,
}

/// One sentence that answers the question of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub tone: Tone,
    pub sentence: Prose,
}

/// A labelled figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub label: String,
    pub value: String,
    pub tone: Tone,
}

/// Rows under a header. The first column is words, the others are figures unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub header: Vec<String>,
    /// One cell per column.
    pub rows: Vec<Vec<Prose>>,
    /// Whether all columns are words.
    pub kind: TableKind,
}

/// What a table's cells are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableKind {
    /// Figures behind a first column of words.
    #[default]
    Figures,
    /// Words in every column.
    Words,
}

/// A plot and the same in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What the plot shows, with the unit of its height.
    pub caption: String,
    pub plot: Plot,
    pub table: Table,
}

/// A bar among others.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it stands for.
    pub label: Prose,
    /// Its length, in the unit of all bars of the list.
    pub length: f64,
    /// The length of a full bar; none: that of the longest one.
    pub whole: Option<f64>,
    pub value: String,
    pub tone: Tone,
}

/// A sample of generated speech at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whose, such as `en`.
    pub name: String,
    /// After which step, in words.
    pub step: String,
    /// What is said, where it is known.
    pub text: Option<String>,
    /// Address of the sound.
    pub sound: Option<String>,
    /// Addresses of pictures, each with what it shows.
    pub pictures: Vec<(String, String)>,
}

/// Rows of a corpus that someone decides on: keep, fix the text, drop. The page saves the decisions as a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// The name of that file.
    pub file: String,
    pub rows: Vec<ReviewRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReviewRow {
    pub id: String,
    pub text: String,
    /// The sound as a `data:` address, or why it cannot be played.
    pub sound: Result<String, String>,
    /// Why it should be heard.
    pub reasons: Vec<Prose>,
    pub facts: Vec<Fact>,
    /// What was decided before: `keep`, `fix` or `drop`.
    pub decided: Option<&'static str>,
}

impl Page {
    pub fn new(lang: Lang, title: impl Into<String>) -> Page {
        Page { lang, title: title.into(), subtitle: Prose::default(), sections: Vec::new() }
    }

    /// Adds a section, unless it is empty.
    pub fn add(&mut self, section: Section) {
        if !section.blocks.is_empty() {
            self.sections.push(section);
        }
    }
}

impl Section {
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), blocks: Vec::new() }
    }

    /// The same with one more block.
    pub fn with(mut self, block: impl Into<Block>) -> Section {
        self.blocks.push(block.into());
        self
    }

    /// The same with a block, where there is one.
    pub fn with_some(self, block: Option<impl Into<Block>>) -> Section {
        match block {
            Some(block) => self.with(block),
            None => self,
        }
    }
}

impl Verdict {
    /// A sentence and how good that is.
    pub fn new(tone: Tone, sentence: impl Into<Prose>) -> Verdict {
        Verdict { tone, sentence: sentence.into() }
    }
}

impl Fact {
    /// A figure without a judgement.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Fact {
        Fact { label: label.into(), value: value.into(), tone: Tone::Neutral }
    }

    pub fn toned(self, tone: Tone) -> Fact {
        Fact { tone, ..self }
    }
}

impl Table {
    pub fn new<const N: usize>(header: [&str; N]) -> Table {
        Table {
            header: header.map(String::from).into(),
            rows: Vec::new(),
            kind: TableKind::Figures,
        }
    }

    /// The same with one more row. Cells may hold code between backticks.
    pub fn row<const N: usize>(mut self, cells: [String; N]) -> Table {
        self.rows.push(cells.map(Prose::from).into());
        self
    }

    /// The same with one more row of finished cells.
    pub fn row_of(mut self, cells: Vec<Prose>) -> Table {
        self.rows.push(cells);
        self
    }

    /// The same, with words in every column.
    pub fn of_words(self) -> Table {
        Table { kind: TableKind::Words, ..self }
    }

    /// The table, unless it is empty.
    pub fn some(self) -> Option<Table> {
        (!self.rows.is_empty()).then_some(self)
    }
}

impl Bar {
    /// A bar without a judgement.
    pub fn new(label: impl Into<Prose>, length: f64, value: impl Into<String>) -> Bar {
        Bar { label: label.into(), length, whole: None, value: value.into(), tone: Tone::Neutral }
    }

    /// A share, of which 1 fills the bar.
    pub fn share(label: impl Into<Prose>, share: f64, value: impl Into<String>) -> Bar {
        Bar { whole: Some(1.0), ..Bar::new(label, share, value) }
    }

    pub fn toned(self, tone: Tone) -> Bar {
        Bar { tone, ..self }
    }
}

macro_rules! impl_from_block {
    ($($kind:ident($from:ty)),* $(,)?) => {$(
        impl From<$from> for Block {
            fn from(block: $from) -> Block { Block::$kind(block) }
        }
    )*};
}

impl_from_block!(
    Verdict(Verdict),
    Facts(Vec<Fact>),
    Text(Prose),
    Table(Table),
    Figure(Figure),
    Bars(Vec<Bar>),
    Samples(Vec<Sample>),
    Review(Review),
);
