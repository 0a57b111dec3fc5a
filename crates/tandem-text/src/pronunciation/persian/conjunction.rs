//! «و» as it is said: /o/ between numbers and in fixed pairs («رفت و آمد»), /va/ elsewhere.
//!
//! In: the parts of a sentence. Out: the phonemes of «و». A written fathe («وَ») always gives /va/.

use super::list::Class;
use super::parts::Piece;

/// The phonemes of «و»; nothing for other words.
pub fn read(pieces: &[Piece], place: usize) -> Option<&'static str> {
    let piece = &pieces[place];
    if piece.text != "و" {
        return None;
    }
    let before = place.checked_sub(1).map(|at| &pieces[at]).filter(|piece| piece.after == "s");
    let after = pieces.get(place + 1).filter(|_| piece.after == "s");
    let (Some(before), Some(after)) = (before, after) else { return Some("va") };
    let number = |piece: &Piece| piece.class() == Some(Class::Number) || piece.text == "نیم";
    let numbers = number(before) && (number(after) || after.text == "نه");
    let pair = PAIRS.contains(&(before.text.as_ref(), after.text.as_ref()));
    Some(if (numbers || pair) && !piece.fathe { "o" } else { "va" })
}

/// Pairs that are said as one word.
const PAIRS: [(&str, &str); 56] = [
    ("آب", "هوا"),
    ("آمد", "رفت"),
    ("آمد", "شد"),
    ("ابر", "باد"),
    ("امر", "نهی"),
    ("این", "آن"),
    ("بند", "بساط"),
    ("بگیر", "ببند"),
    ("بیش", "کم"),
    ("پخت", "پز"),
    ("پر", "بال"),
    ("پرس", "جو"),
    ("پست", "بلند"),
    ("پیچ", "تاب"),
    ("پیچ", "خم"),
    ("تاب", "توان"),
    ("تر", "تازه"),
    ("تک", "تنها"),
    ("تک", "توک"),
    ("جست", "جو"),
    ("جنب", "جوش"),
    ("جور", "واجور"),
    ("چک", "چانه"),
    ("حال", "هوا"),
    ("حساب", "کتاب"),
    ("خرت", "پرت"),
    ("خرید", "فروش"),
    ("خواب", "خوراک"),
    ("خورد", "خوراک"),
    ("داد", "ستد"),
    ("داد", "فریاد"),
    ("درب", "داغان"),
    ("در", "دیوار"),
    ("دست", "پا"),
    ("دست", "پنجه"),
    ("رفت", "آمد"),
    ("رفت", "روب"),
    ("ریخت", "پاش"),
    ("زد", "بند"),
    ("زد", "خورد"),
    ("زن", "شوهر"),
    ("ساخت", "ساز"),
    ("ساز", "کار"),
    ("سر", "صدا"),
    ("سر", "سامان"),
    ("سر", "کار"),
    ("سر", "کله"),
    ("سوخت", "ساز"),
    ("شست", "شو"),
    ("شکل", "شمایل"),
    ("ضرب", "شتم"),
    ("کم", "بیش"),
    ("کم", "کاست"),
    ("گفت", "گو"),
    ("گفت", "شنود"),
    ("گیر", "دار"),
];
