//! What reading text costs: 13,100 rows of about 100 characters, one thread.
//!
//! `cargo run --release -p tandem-data --example text_speed`. Each line is the best of several
//! rounds; rounds of all cases are interleaved, so that a busy machine slows all alike.

#![allow(clippy::print_stdout, reason = "an example for people to read")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use tandem_data::text::{FrontEnd, Language, Memo, TextConfig};

const ROWS: usize = 13_100;
const ROUNDS: usize = 7;

const ENGLISH: [&str; 6] = [
    "Printing, in the only sense with which we are at present concerned, differs from most if not all",
    "the invention of movable metal letters in the middle of the fifteenth century may justly be said",
    "He paid $3.50 on May 12th, 1984, at 3:05 pm for 5 km of rope; Dr. Smith thought 20% too much.",
    "\"And now,\" she said, \"it's time for the well-known story of the three bears and their porridge.\"",
    "In 1455 the forty-two line Bible was printed at Mainz, and it has never been surpassed since then",
    "The Commission’s report – published later – found that no one else had been near the windows.",
];

const PERSIAN: [&str; 5] = [
    "او هر روز صبح زود از خانه بیرون می‌رود و تا غروب آفتاب در مزرعه‌ی پدربزرگش کار می‌کند، سپس برمی‌گردد",
    "كتاب هاي قديمي را در سال ۱۳۵۷ خریدم و ۲۵٪ آن‌ها را به دوستم علی دادم که در تهران زندگی می کند.",
    "ساعت ۱۵:۳۰ جلسه‌ای با ۱۲ نفر از مدیران برگزار شد؛ آیا شما هم در آن جلسه حضور داشتید؟ بله، بودم.",
    "باران می‌بارید و خیابان‌ها خلوت بود، اما مغازه‌دار پیر هنوز چراغ مغازه‌اش را خاموش نکرده بود و",
    "قیمت هر کیلو برنج ایرانی به ۱۲۰٬۰۰۰ تومان رسید که نسبت به سال گذشته ۳/۵ درصد افزایش داشته است.",
];

/// Reads all rows once and counts their symbols.
type Case<'a> = Box<dyn FnMut() -> usize + 'a>;

fn main() {
    let by_script = FrontEnd::new(&TextConfig::default()).expect("default settings");
    let four = [Language::English, Language::German, Language::French, Language::Persian];
    let config = TextConfig { languages: four.to_vec(), ..TextConfig::default() };
    let by_statistics = FrontEnd::new(&config).expect("four languages");
    let english: Vec<&str> = ENGLISH.iter().copied().cycle().take(ROWS).collect();
    let persian: Vec<&str> = PERSIAN.iter().copied().cycle().take(ROWS).collect();
    let mixed: Vec<&str> =
        english.iter().zip(&persian).flat_map(|(a, b)| [*a, *b]).take(ROWS).collect();
    let mut memo = Memo::new(1024);
    let mut cases: Vec<(&str, Case<'_>)> = vec![
        ("English, script decides", Box::new(|| read(&by_script, &english))),
        ("Persian, script decides", Box::new(|| read(&by_script, &persian))),
        ("both, script decides", Box::new(|| read(&by_script, &mixed))),
        ("English, statistics decide (en de fr fa)", Box::new(|| read(&by_statistics, &english))),
        (
            "both, repeated texts from a memo",
            Box::new(|| {
                let mut symbols =
                    |row: &&str| memo.read(&by_script, row, None).map(|r| r.transcript.len());
                mixed.iter().map(|row| symbols(row).expect("readable")).sum()
            }),
        ),
    ];
    let mut best = vec![Duration::MAX; cases.len()];
    for _ in 0..ROUNDS {
        for (case, best) in cases.iter_mut().zip(&mut best) {
            let start = Instant::now();
            black_box((case.1)());
            *best = (*best).min(start.elapsed());
        }
    }
    for ((name, _), best) in cases.iter().zip(&best) {
        let each = best.as_secs_f64() * 1e6 / ROWS as f64;
        println!("{:7.1} ms {each:6.2} us/row  {name}", best.as_secs_f64() * 1e3);
    }
}

fn read(front_end: &FrontEnd, rows: &[&str]) -> usize {
    let symbols = |row: &&str| front_end.read(row, None).map(|reading| reading.transcript.len());
    rows.iter().map(|row| symbols(row).expect("readable")).sum()
}
