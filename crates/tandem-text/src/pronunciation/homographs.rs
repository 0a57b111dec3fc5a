//! Words that are written alike and spoken differently: `read`, `live`, `record`.
//!
//! In: a word and its neighbours. Out: the phones that the neighbours make likely. There is no parser: a
//! determiner before a word makes it a noun, `to` or `will` makes it a verb, and a few words are
//! decided by the words they usually occur with. Without a hint, the commoner one is used.

use super::super::words::Word;
use super::arpabet::{Phone, phones};
use super::inflection::with_s;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The phones of a homograph; `None` for all other words.
pub fn read(words: &[Word], place: usize) -> Option<Vec<Phone>> {
    let text = words[place].text.as_str();
    let table = &*TABLE;
    if let Some(entry) = table.get(text) {
        return Some(entry.choose(&Neighbours::of(words, place)));
    }
    // `records`, `uses`: the same word with another hint for the verb.
    let stem = text.strip_suffix('s')?;
    let entry = table.get(stem).filter(|entry| entry.takes_s)?;
    let neighbours = Neighbours::of(words, place);
    let chosen = if neighbours.suggest_third_person() { &entry.verb } else { &entry.noun };
    Some(with_s(chosen.clone()))
}

/// One homograph.
struct Homograph {
    noun: Vec<Phone>,
    verb: Vec<Phone>,
    usual: Use,
    rules: Vec<&'static Rule>,
    /// Whether the two are a noun and a verb, so that the general hints hold for them.
    is_pair: bool,
    /// Whether `verb` is the past tense of `noun`.
    is_past: bool,
    /// Whether `-s` makes the plural of the noun and the third person of the verb.
    takes_s: bool,
}

impl Homograph {
    fn choose(&self, neighbours: &Neighbours<'_>) -> Vec<Phone> {
        let rule = self.rules.iter().find(|rule| rule.holds(neighbours));
        let chosen = match rule.map(|rule| rule.then) {
            Some(chosen) => chosen,
            // `smith read it`: the present would be `reads`.
            None if self.is_past && neighbours.follow_singular() => Use::Verb,
            None if self.is_pair => neighbours.suggest().unwrap_or(self.usual),
            None => self.usual,
        };
        match chosen {
            Use::Noun => self.noun.clone(),
            Use::Verb => self.verb.clone(),
        }
    }
}

/// Which of the two readings: the noun (or adjective), or the verb (or past tense).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Noun,
    Verb,
}

/// Words around a word, in lower case; empty at a mark or at the ends.
struct Neighbours<'a> {
    before: &'a str,
    /// The word before the one before.
    earlier: &'a str,
    after: &'a str,
    sentence: &'a [Word],
}

impl<'a> Neighbours<'a> {
    fn of(words: &'a [Word], place: usize) -> Self {
        let joined = |word: &&Word| matches!(word.tail.as_str(), " " | "-");
        let before = place.checked_sub(1).map(|at| &words[at]).filter(joined);
        let earlier = before.and_then(|_| place.checked_sub(2)).map(|at| &words[at]).filter(joined);
        let after = Some(&words[place]).filter(joined).and_then(|_| words.get(place + 1));
        let text = |word: Option<&'a Word>| word.map_or("", |word| word.text.as_str());
        Self { before: text(before), earlier: text(earlier), after: text(after), sentence: words }
    }

    /// What the word before suggests.
    fn suggest(&self) -> Option<Use> {
        let object = is_in(DETERMINERS, self.after) || is_in(OBJECTS, self.after);
        let begins = self.before.is_empty() || is_in("and or then but", self.before);
        if is_in(VERB_FOLLOWS, self.before) || object && begins {
            return Some(Use::Verb);
        }
        // `the new record`, `of record`: an adjective hides the determiner.
        if is_in(NOUN_FOLLOWS, self.before) || self.before.ends_with("'s") {
            return Some(Use::Noun);
        }
        is_in(DETERMINERS, self.earlier).then_some(Use::Noun)
    }

    /// Whether the word before is probably a noun in the singular.
    fn follow_singular(&self) -> bool {
        let word = self.before;
        !word.is_empty()
            && !word.ends_with('s')
            && ![VERB_FOLLOWS, NOUN_FOLLOWS, OBJECTS, "and or but then people children"]
                .iter()
                .any(|list| is_in(list, word))
    }

    fn suggest_third_person(&self) -> bool {
        let object = is_in(DETERMINERS, self.after) || is_in(OBJECTS, self.after);
        is_in("he she it who which that this", self.before)
            || object && !is_in(NOUN_FOLLOWS, self.before)
    }
}

const DETERMINERS: &str = "the a an this these those my your his her its our their some any no \
    every each another";
const OBJECTS: &str = "it them him me us that all both";
const NOUN_FOLLOWS: &str = "the a an this that these those my your his her its our their some any \
    no every each another of in on at for with by from into about as first second third last next \
    new old one two three four five six seven eight nine ten many few several all world own same \
    main whole under over without per good great small large big";
const VERB_FOLLOWS: &str = "to will would can could should shall may might must cannot can't won't \
    don't didn't doesn't wouldn't couldn't shouldn't i you we they let's please not never always \
    i'll you'll we'll they'll he'll she'll it'll i'd you'd we'd they'd he'd she'd who'll let help \
    do did does also often usually";

fn is_in(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|known| known == word)
}

/// A reading that certain neighbours decide, before the general hints.
struct Rule {
    word: &'static str,
    then: Use,
    before: &'static str,
    after: &'static str,
    /// Words anywhere in the sentence.
    anywhere: &'static str,
}

impl Rule {
    fn holds(&self, near: &Neighbours<'_>) -> bool {
        is_in(self.before, near.before)
            || is_in(self.after, near.after)
            || !self.anywhere.is_empty()
                && near.sentence.iter().any(|word| is_in(self.anywhere, &word.text))
    }
}

const fn rule(
    word: &'static str,
    then: Use,
    before: &'static str,
    after: &'static str,
    anywhere: &'static str,
) -> Rule {
    Rule { word, then, before, after, anywhere }
}

/// In order: the first rule that holds decides.
static RULES: &[Rule] = {
    use Use::{Noun, Verb};
    &[
        // `verb` is the past tense here.
        rule(
            "read",
            Noun,
            "to will would can could should must may might did didn't don't do \
            cannot can't won't please let's shall does doesn't a wouldn't couldn't",
            "",
            "",
        ),
        rule(
            "read",
            Verb,
            "have has had having was were been being be is are i've you've we've \
            they've he's she's it's i'd already he she it just never well who ever",
            "",
            "",
        ),
        rule(
            "read",
            Verb,
            "",
            "",
            "yesterday ago last was were had said told went came took then \
            once finished asked wrote",
        ),
        // `verb` is the metal.
        rule(
            "lead",
            Verb,
            "molten melted toxic",
            "pipe pipes paint paints poisoning pencil pencils \
            bullet bullets weight weights acid ore oxide shot ceiling roof battery batteries",
            "",
        ),
        rule("lead", Verb, "", "", "copper zinc mercury arsenic tin"),
        rule(
            "live",
            Noun,
            "broadcast recorded performed streamed go goes went going came \
            appearing perform performing playing streaming watch shown",
            "music show shows concert \
            concerts performance performances broadcast broadcasts stream streams streaming \
            audience audiences wire wires coverage television tv band bands event events recording \
            recordings album albums animals animal stock bait ammunition demo version session \
            entertainment fire oak feed rounds report reports on",
            "",
        ),
        rule("wind", Verb, "", "up down its around", ""),
        rule(
            "wind",
            Noun,
            "strong cold north south east west high light solar",
            "blew blows power \
            turbine turbines speed energy chill",
            "",
        ),
        rule(
            "close",
            Noun,
            "so too very as how pretty quite is are was were been be being came \
            come comes coming get gets got getting stay stayed stand stood stands keep kept sit \
            sat how's that's it's really fairly extremely relatively draws drew not",
            "to by \
            enough together friend friends friendship call calls range contact attention \
            relationship relationships relative relatives ties quarters look proximity \
            inspection behind up family second election race associate associates ally",
            "",
        ),
        rule(
            "use",
            Noun,
            "no of any in much little what's good better best heavy daily widespread \
            wide common make made makes making put personal human public private",
            "of",
            "",
        ),
        rule("used", Noun, "is are was were be been being", "", ""),
        rule("used", Verb, "", "to", ""),
        rule("tear", Verb, "", "up down apart off it into out through", ""),
        rule("tear", Noun, "single", "gas drop drops duct", ""),
        rule("bow", Verb, "took take takes", "down to before out", ""),
        rule("bow", Noun, "", "tie ties and string", ""),
        rule(
            "bass",
            Verb,
            "striped sea largemouth smallmouth",
            "fishing fish",
            "fish fishing lake \
            river trout",
        ),
        rule("wound", Verb, "", "up down around through its their round tightly", ""),
        rule("dove", Verb, "", "into in under down off headfirst", ""),
        rule(
            "minute",
            Verb,
            "most very",
            "detail details amount amounts quantity quantities \
            traces trace particles particle differences difference",
            "",
        ),
        rule("desert", Verb, "", "him her them me us his", ""),
        rule(
            "content",
            Verb,
            "is are was were be been am i'm he's she's they're we're feel feels \
            felt feeling seem seems seemed perfectly quite very so not",
            "with to",
            "",
        ),
        rule("resume", Noun, "a my your his her their our the", "", ""),
        rule("refuse", Noun, "the of household", "collection bin dump heap", ""),
        rule("object", Verb, "", "to", ""),
        rule("subject", Noun, "", "to of matter", ""),
        rule("present", Noun, "is are was were be been at the", "", ""),
        rule("perfect", Noun, "is are was were be been", "", ""),
        rule("separate", Noun, "is are was were be been", "", ""),
        rule("moderate", Noun, "is are was were be been", "", ""),
        rule("deliberate", Noun, "is are was were be been", "", ""),
        rule("appropriate", Noun, "is are was were be been", "", ""),
        rule("elaborate", Verb, "", "on", ""),
        rule("house", Verb, "can could will to", "the a about over them up", ""),
        rule("lives", Noun, "", "", "saved lost save save losing changed nine"),
    ]
};

/// Noun or adjective, verb, and which one is commoner. For some words the two are other pairs: the
/// rules above say so.
static PAIRS: &[(&str, &str, &str, Use)] = {
    use Use::{Noun, Verb};
    &[
        ("read", "R IY1 D", "R EH1 D", Noun),
        ("lead", "L IY1 D", "L EH1 D", Noun),
        ("live", "L AY1 V", "L IH1 V", Verb),
        ("lives", "L AY1 V Z", "L IH1 V Z", Verb),
        ("wind", "W IH1 N D", "W AY1 N D", Noun),
        ("close", "K L OW1 S", "K L OW1 Z", Verb),
        ("use", "Y UW1 S", "Y UW1 Z", Verb),
        ("used", "Y UW1 Z D", "Y UW1 S T", Noun),
        ("tear", "T IH1 R", "T EH1 R", Noun),
        ("bow", "B OW1", "B AW1", Noun),
        ("bass", "B EY1 S", "B AE1 S", Noun),
        ("wound", "W UW1 N D", "W AW1 N D", Noun),
        ("dove", "D AH1 V", "D OW1 V", Noun),
        ("minute", "M IH1 N AH0 T", "M AY0 N UW1 T", Noun),
        ("desert", "D EH1 Z ER0 T", "D IH0 Z ER1 T", Noun),
        ("content", "K AA1 N T EH0 N T", "K AH0 N T EH1 N T", Noun),
        ("resume", "R EH1 Z AH0 M EY2", "R IH0 Z UW1 M", Verb),
        ("refuse", "R EH1 F Y UW2 Z", "R AH0 F Y UW1 Z", Verb),
        ("house", "HH AW1 S", "HH AW1 Z", Noun),
        ("excuse", "IH0 K S K Y UW1 S", "IH0 K S K Y UW1 Z", Verb),
        ("abuse", "AH0 B Y UW1 S", "AH0 B Y UW1 Z", Noun),
        ("misuse", "M IH0 S Y UW1 S", "M IH0 S Y UW1 Z", Noun),
        ("record", "R EH1 K ER0 D", "R IH0 K AO1 R D", Noun),
        ("present", "P R EH1 Z AH0 N T", "P R IY0 Z EH1 N T", Noun),
        ("object", "AA1 B JH EH0 K T", "AH0 B JH EH1 K T", Noun),
        ("subject", "S AH1 B JH IH0 K T", "S AH0 B JH EH1 K T", Noun),
        ("project", "P R AA1 JH EH0 K T", "P R AH0 JH EH1 K T", Noun),
        ("produce", "P R OW1 D UW0 S", "P R AH0 D UW1 S", Verb),
        ("progress", "P R AA1 G R EH2 S", "P R AH0 G R EH1 S", Noun),
        ("protest", "P R OW1 T EH2 S T", "P R AH0 T EH1 S T", Noun),
        ("permit", "P ER1 M IH2 T", "P ER0 M IH1 T", Verb),
        ("perfect", "P ER1 F IH2 K T", "P ER0 F EH1 K T", Noun),
        ("conduct", "K AA1 N D AH0 K T", "K AH0 N D AH1 K T", Verb),
        ("conflict", "K AA1 N F L IH0 K T", "K AH0 N F L IH1 K T", Noun),
        ("contract", "K AA1 N T R AE2 K T", "K AH0 N T R AE1 K T", Noun),
        ("contrast", "K AA1 N T R AE2 S T", "K AH0 N T R AE1 S T", Noun),
        ("convert", "K AA1 N V ER0 T", "K AH0 N V ER1 T", Verb),
        ("convict", "K AA1 N V IH2 K T", "K AH0 N V IH1 K T", Verb),
        ("import", "IH1 M P AO2 R T", "IH2 M P AO1 R T", Noun),
        ("export", "EH1 K S P AO2 R T", "IH0 K S P AO1 R T", Noun),
        ("increase", "IH1 N K R IY2 S", "IH0 N K R IY1 S", Noun),
        ("decrease", "D IY1 K R IY2 S", "D IH0 K R IY1 S", Noun),
        ("insult", "IH1 N S AH2 L T", "IH0 N S AH1 L T", Noun),
        ("rebel", "R EH1 B AH0 L", "R IH0 B EH1 L", Noun),
        ("refund", "R IY1 F AH2 N D", "R IH0 F AH1 N D", Noun),
        ("reject", "R IY1 JH EH0 K T", "R IH0 JH EH1 K T", Verb),
        ("suspect", "S AH1 S P EH2 K T", "S AH0 S P EH1 K T", Noun),
        ("survey", "S ER1 V EY2", "S ER0 V EY1", Noun),
        ("transport", "T R AE1 N S P AO0 R T", "T R AE0 N S P AO1 R T", Noun),
        ("transfer", "T R AE1 N S F ER0", "T R AE0 N S F ER1", Noun),
        ("upset", "AH1 P S EH2 T", "AH0 P S EH1 T", Verb),
        ("address", "AE1 D R EH2 S", "AH0 D R EH1 S", Noun),
        ("attribute", "AE1 T R AH0 B Y UW2 T", "AH0 T R IH1 B Y UW2 T", Noun),
        ("combine", "K AA1 M B AY2 N", "K AH0 M B AY1 N", Verb),
        ("compound", "K AA1 M P AW0 N D", "K AH0 M P AW1 N D", Noun),
        ("console", "K AA1 N S OW0 L", "K AH0 N S OW1 L", Noun),
        ("digest", "D AY1 JH EH0 S T", "D AY0 JH EH1 S T", Verb),
        ("entrance", "EH1 N T R AH0 N S", "IH0 N T R AE1 N S", Noun),
        ("extract", "EH1 K S T R AE2 K T", "IH0 K S T R AE1 K T", Verb),
        ("invalid", "IH1 N V AH0 L AH0 D", "IH2 N V AE1 L AH0 D", Verb),
        ("separate", "S EH1 P ER0 IH0 T", "S EH1 P ER0 EY2 T", Noun),
        ("estimate", "EH1 S T AH0 M AH0 T", "EH1 S T AH0 M EY2 T", Noun),
        ("graduate", "G R AE1 JH AH0 W AH0 T", "G R AE1 JH AH0 W EY2 T", Noun),
        ("associate", "AH0 S OW1 SH IY0 AH0 T", "AH0 S OW1 SH IY0 EY2 T", Noun),
        ("deliberate", "D IH0 L IH1 B ER0 AH0 T", "D IH0 L IH1 B ER0 EY2 T", Noun),
        ("moderate", "M AA1 D ER0 AH0 T", "M AA1 D ER0 EY2 T", Noun),
        ("duplicate", "D UW1 P L AH0 K AH0 T", "D UW1 P L AH0 K EY2 T", Noun),
        ("appropriate", "AH0 P R OW1 P R IY0 AH0 T", "AH0 P R OW1 P R IY0 EY2 T", Noun),
        ("alternate", "AO1 L T ER0 N AH0 T", "AO1 L T ER0 N EY2 T", Noun),
        ("approximate", "AH0 P R AA1 K S AH0 M AH0 T", "AH0 P R AA1 K S AH0 M EY2 T", Noun),
        ("advocate", "AE1 D V AH0 K AH0 T", "AE1 D V AH0 K EY2 T", Noun),
        ("delegate", "D EH1 L AH0 G AH0 T", "D EH1 L AH0 G EY2 T", Noun),
        ("elaborate", "IH0 L AE1 B R AH0 T", "IH0 L AE1 B ER0 EY2 T", Noun),
        ("intimate", "IH1 N T AH0 M AH0 T", "IH1 N T AH0 M EY2 T", Noun),
        ("coordinate", "K OW0 AO1 R D AH0 N AH0 T", "K OW0 AO1 R D AH0 N EY2 T", Verb),
    ]
};

static TABLE: LazyLock<HashMap<&'static str, Homograph>> = LazyLock::new(|| {
    let homograph = |&(word, noun, verb, usual): &(&'static str, &str, &str, Use)| {
        let rules = RULES.iter().filter(|rule| rule.word == word).collect();
        let is_pair = !is_in("read lead used bass wound dove minute content invalid", word);
        let takes_s = is_pair && !is_in("live lives close wind", word);
        let (noun, verb) = (phones(noun), phones(verb));
        let is_past = word == "read";
        (word, Homograph { noun, verb, usual, rules, is_pair, is_past, takes_s })
    };
    PAIRS.iter().map(homograph).collect()
});

#[cfg(test)]
mod tests {
    use super::super::arpabet::Phone;
    use super::*;

    #[test]
    fn every_phone_is_known_and_every_rule_has_a_word() {
        for (word, noun, verb, _) in PAIRS {
            for name in noun.split(' ').chain(verb.split(' ')) {
                assert!(Phone::named(name).is_some(), "{word}: {name}");
            }
            assert_ne!(noun, verb, "{word}");
        }
        for rule in RULES {
            assert!(TABLE.contains_key(rule.word), "{}", rule.word);
        }
        assert_eq!(TABLE.len(), PAIRS.len(), "a word is listed twice");
    }
}
