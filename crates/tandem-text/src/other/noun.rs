//! What the word after a number shows of its gender.
//!
//! In: a number and the text after it. Out: the gender, by the ending of the next word. There is no dictionary: a noun whose
//! ending misleads gets the wrong form of one or two.

use super::super::language::Language;
use super::super::scan::letters;
use super::cardinals::Gender;

/// Words that are no noun: the number before them counts nothing.
fn is_function_word(language: Language, word: &str) -> bool {
    let listed = match language {
        Language::German => {
            "ist sind war und oder bis plus minus mal von in im am an auf gegen zu zum zur vor nach mit der die das den dem des für als hat uhr"
        }
        Language::French => {
            "et ou est sont de du des à au pour par sur contre plus moins fois dans en a le la les"
        }
        Language::Spanish => {
            "y o u e de del a al en por con sin para es son fue más menos que se la el los las ha"
        }
        Language::Italian => "e o di del da a al in per con su è sono più meno che la il lo le ha",
        Language::Portuguese => {
            "e ou de do da a ao à em no na por para com é são mais menos que o os as"
        }
        Language::Russian => {
            "и или а на в с к по за из от до не да для ни но или плюс минус раза раз"
        }
        Language::Ukrainian => {
            "і й або та а на в у з до по за із від не для ні плюс мінус рази раз"
        }
        Language::Polish => "i lub albo a na w z do po za od nie dla plus minus razy raz to",
        Language::Czech => "a i nebo na v ve s se z do po za od ne pro plus minus krát to je",
        Language::Swedish => "och eller är var i på av till från med för plus minus gånger mot",
        _ => "",
    };
    listed.split(' ').any(|other| other == word)
}

/// The gender of what `value` counts, by the word that `rest` begins with.
pub fn gender(language: Language, value: u64, rest: &str) -> Gender {
    use Gender::{Counting, Feminine, Masculine, Neuter};
    let word = letters(rest.trim_start_matches(' '));
    if word.chars().nth(1).is_none() || is_function_word(language, word) {
        return match language {
            Language::Russian | Language::Ukrainian | Language::Polish | Language::Czech => {
                Masculine
            }
            _ => Counting,
        };
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    let feminine = |is: bool| if is { Feminine } else { Masculine };
    let two = value % 10 == 2;
    match language {
        Language::German => feminine(
            ends(&[
                "e", "ung", "heit", "keit", "schaft", "ion", "tät", "ik", "ur", "person", "frau",
                "uhr", "stadt", "nacht", "million",
            ]) && !ends(&["käse", "name", "ende", "auge", "junge", "kollege"]),
        ),
        Language::French => feminine(
            ends(&[
                "heure",
                "heures",
                "fois",
                "minute",
                "minutes",
                "seconde",
                "secondes",
                "personne",
                "personnes",
                "semaine",
                "semaines",
                "page",
                "pages",
                "femme",
                "femmes",
                "fille",
                "filles",
                "maison",
                "maisons",
                "tonne",
                "tonnes",
            ]) || ends(&[
                "tion", "tions", "sion", "sions", "té", "tés", "ette", "ettes", "ence", "ences",
                "ance", "ances", "ée", "ées", "euse", "euses", "elle", "elles", "ure", "ures",
            ]),
        ),
        Language::Spanish => feminine(
            ends(&["a", "as", "ción", "ciones", "sión", "siones", "dad", "dades"])
                && !ends(&["día", "días", "ema", "emas", "mapa", "mapas", "grama", "gramas"]),
        ),
        Language::Portuguese => feminine(
            ends(&["a", "as", "ção", "ções", "são", "sões", "dade", "dades", "gem", "gens"])
                && !ends(&["dia", "dias", "ema", "emas", "mapa", "mapas", "grama", "gramas"]),
        ),
        Language::Italian => {
            feminine(ends(&["a", "zione", "sione", "tà", "tù"]) && !ends(&["ema"]))
        }
        Language::Swedish
            if ends(&[
                "a", "ning", "het", "are", "else", "ion", "dag", "gång", "person", "man", "bil",
                "bok", "vecka", "månad", "minut", "sekund", "kvinna", "stol", "hund", "katt",
            ]) =>
        {
            Masculine
        }
        Language::Swedish => Counting,
        Language::Russian if two => feminine(ends(&["ы", "и"])),
        Language::Ukrainian if two => {
            feminine(ends(&["ини", "унди", "вні", "оби", "ниги", "ати", "інки", "онки", "ії"]))
        }
        Language::Polish if two => feminine(ends(&[
            "iny", "uty", "undy", "oby", "ety", "ążki", "rony", "tony", "żony", "cje",
        ])),
        Language::Czech if two => feminine(ends(&[
            "iny", "uty", "undy", "oby", "eny", "nihy", "runy", "ta", "la", "na", "va",
        ])),
        Language::Russian if ends(&["о", "е"]) => Neuter,
        Language::Russian => feminine(ends(&["а", "я"])),
        Language::Ukrainian if ends(&["о", "е"]) => Neuter,
        Language::Ukrainian => feminine(ends(&["а", "я"])),
        Language::Polish if ends(&["o", "e", "ę", "um"]) => Neuter,
        Language::Polish => feminine(ends(&["a"])),
        Language::Czech if ends(&["o", "í"]) => Neuter,
        Language::Czech => feminine(ends(&["a", "e", "st"])),
        _ => Counting,
    }
}
