//! English sentences and their normalised text.

use super::super::folding::fold;
use super::super::words::without_marks;

fn normalize(folded: &str) -> String {
    without_marks(&super::normalize(folded)).into_owned()
}

#[track_caller]
fn check(raw: &str, spoken: &str) {
    let read = normalize(&fold(raw));
    assert_eq!(read, spoken, "{raw}");
    assert_eq!(normalize(&fold(&read)), read, "reading it again");
}

#[track_caller]
fn check_all(pairs: &[(&str, &str)]) {
    pairs.iter().for_each(|(raw, spoken)| check(raw, spoken));
}

#[test]
fn plain_words_get_lower_case_and_single_spaces() {
    check_all(&[
        ("Hello, World!", "hello, world!"),
        ("  two\tspaces \n here ", "two spaces here"),
        ("Wait... what?!", "wait… what?!"),
        ("Wait. . . what", "wait… what"),
        ("No!!! Really??", "no! really?"),
        ("“Yes,” she said.", "\"yes,\" she said."),
        ("It’s the dogs' bone", "it's the dogs bone"),
        ("a well-known fact", "a well-known fact"),
        ("one — two -- three - four", "one — two — three — four"),
        ("word , word .Next", "word, word. next"),
        ("[see note] {x}", "(see note) (x)"),
        ("café naïve Ångström", "cafe naive angstrom"),
        ("rock 'n' roll", "rock n roll"),
    ]);
}

#[test]
fn whole_numbers_are_read() {
    check_all(&[
        ("0", "zero"),
        ("I have 7 cats", "i have seven cats"),
        ("21 guns", "twenty-one guns"),
        ("101 dalmatians", "one hundred one dalmatians"),
        (
            "1,234,567 people",
            "one million two hundred thirty-four thousand five hundred sixty-seven people",
        ),
        ("5,000", "five thousand"),
        ("1,000,000,000,000,000,000", "one quintillion"),
        ("agent 007", "agent zero zero seven"),
        ("(42)", "(forty-two)"),
        ("items 1,2,3", "items one, two, three"),
        ("a 19-year-old", "a nineteen-year-old"),
        ("MP3 and 3D", "m p three and three d"),
        ("۱۲ eggs", "twelve eggs"),
        ("١٢ eggs", "twelve eggs"),
        ("１２ eggs", "twelve eggs"),
    ]);
}

#[test]
fn decimals_and_signs_are_read() {
    check_all(&[
        ("3.14", "three point one four"),
        ("0.5 percent", "zero point five percent"),
        ("1,234.5", "one thousand two hundred thirty-four point five"),
        ("It fell to -5.", "it fell to minus five."),
        ("−40 degrees", "minus forty degrees"),
        ("version 1.2.3", "version one point two point three"),
        ("2 + 2 = 4", "two plus two equals four"),
        ("3 × 4", "three times four"),
        ("x² and y³", "x squared and y cubed"),
        ("H₂O", "h two o"),
    ]);
}

#[test]
fn ordinals_are_read() {
    check_all(&[
        ("the 1st", "the first"),
        ("2nd, 3rd and 4th", "second, third and fourth"),
        ("the 22nd of May", "the twenty-second of may"),
        ("the 100th time", "the one hundredth time"),
        ("May 12th, 2024", "may twelfth, twenty twenty-four"),
        ("the 21ST century", "the twenty-first century"),
    ]);
}

#[test]
fn years_are_distinguished_from_quantities() {
    check_all(&[
        ("in 1984", "in nineteen eighty-four"),
        ("It was 1984.", "it was nineteen eighty-four."),
        ("1984", "nineteen eighty-four"),
        ("in 2005", "in two thousand five"),
        ("since 1900", "since nineteen hundred"),
        ("in 1905", "in nineteen oh five"),
        ("in 1066", "in ten sixty-six"),
        ("in 2024", "in twenty twenty-four"),
        ("1500 people came", "one thousand five hundred people came"),
        ("1800 soldiers", "one thousand eight hundred soldiers"),
        ("more than 1200", "more than one thousand two hundred"),
        ("1,984", "one thousand nine hundred eighty-four"),
        ("1984 was bad", "nineteen eighty-four was bad"),
        ("the 1990s", "the nineteen nineties"),
        ("the 1990's", "the nineteen nineties"),
        ("the 1900s", "the nineteen hundreds"),
        ("the '80s", "the eighties"),
        ("1984's best", "nineteen eighty-four's best"),
        ("1914-1918", "nineteen fourteen to nineteen eighteen"),
        ("1914–18", "nineteen fourteen to eighteen"),
        ("on 2024-05-12", "on may twelfth twenty twenty-four"),
        ("12/25/2020", "december twenty-fifth twenty twenty"),
        ("3/4/2020", "march fourth twenty twenty"),
    ]);
}

#[test]
fn times_are_read() {
    check_all(&[
        ("3:05 pm", "three oh five p m"),
        ("at 15:30", "at fifteen thirty"),
        ("at 3:00", "at three o'clock"),
        ("at 3:00 p.m. today", "at three p m today"),
        ("We met at 5 p.m.", "we met at five p m."),
        ("We met at 5 p.m. He left.", "we met at five p m. he left."),
        ("8am", "eight a m"),
        ("18:00", "eighteen hundred"),
        ("1:02:03", "one hour two minutes and three seconds"),
        ("a ratio of 3:1", "a ratio of three to one"),
    ]);
}

#[test]
fn money_is_read() {
    check_all(&[
        ("$3.50", "three dollars and fifty cents"),
        ("$1", "one dollar"),
        ("$1.01", "one dollar and one cent"),
        ("$0.99", "ninety-nine cents"),
        ("$5.00", "five dollars"),
        ("£20", "twenty pounds"),
        ("£2.50", "two pounds and fifty pence"),
        ("€1,000", "one thousand euros"),
        ("¥500", "five hundred yen"),
        ("﷼5000", "five thousand rials"),
        ("$3 million", "three million dollars"),
        ("$2.5bn", "two point five billion dollars"),
        ("$10k", "ten thousand dollars"),
        ("US$5", "five dollars"),
        ("-$5", "minus five dollars"),
        ("5€", "five euros"),
        ("50¢", "fifty cents"),
        ("$3.5", "three dollars and fifty cents"),
    ]);
}

#[test]
fn percent_fractions_and_units_are_read() {
    check_all(&[
        ("50%", "fifty percent"),
        ("12.5 %", "twelve point five percent"),
        ("1/2 cup", "one half cup"),
        ("3/4", "three quarters"),
        ("2/3 of them", "two thirds of them"),
        ("½", "one half"),
        ("3½ miles", "three and a half miles"),
        ("1 1/2 cups", "one and a half cups"),
        ("2 3/4", "two and three quarters"),
        ("24/7", "twenty-four seven"),
        ("5 km", "five kilometers"),
        ("1 km", "one kilometer"),
        ("5km", "five kilometers"),
        ("100 km/h", "one hundred kilometers per hour"),
        ("60 mph", "sixty miles per hour"),
        ("2.5 kg", "two point five kilograms"),
        ("20 °C", "twenty degrees celsius"),
        ("-5°C", "minus five degrees celsius"),
        ("16 GB", "sixteen gigabytes"),
        ("44.1 kHz", "forty-four point one kilohertz"),
        ("20 m²", "twenty square meters"),
        ("6 ft tall", "six feet tall"),
        ("5 mice", "five mice"),
        ("1500 m", "one thousand five hundred meters"),
    ]);
}

#[test]
fn abbreviations_are_whole_words() {
    check_all(&[
        ("Mr. Brown", "mister brown"),
        ("Mrs. Brown", "missus brown"),
        ("Dr. Smith", "doctor smith"),
        ("Dr Smith", "doctor smith"),
        ("on Elm Dr.", "on elm drive."),
        ("St. Paul", "saint paul"),
        ("on Main St. today", "on main street today"),
        ("Main St.", "main street."),
        ("made of zinc.", "made of zinc."),
        ("Apple Inc. grew", "apple incorporated grew"),
        ("Apple Inc.", "apple incorporated."),
        ("Smith & Co. Ltd.", "smith and company limited."),
        ("cats vs. dogs", "cats versus dogs"),
        ("cats, dogs, etc.", "cats, dogs, et cetera."),
        ("cats etc. The end", "cats et cetera. the end"),
        ("e.g. this", "for example this"),
        ("i.e., that", "that is, that"),
        ("No. 5", "number five"),
        ("I said no. Then", "i said no. then"),
        ("King Jr. spoke", "king junior spoke"),
        ("vol. 2, pp. 5-7", "volume two, pages five to seven"),
        ("p. 12", "page twelve"),
        ("Jan. 5", "january fifth"),
        ("Prof. Gen. Lee", "professor general lee"),
        ("the gen. of", "the gen. of"),
    ]);
}

#[test]
fn initials_and_capitals_are_spelled() {
    check_all(&[
        ("the U.S. Army", "the u s army"),
        ("the U.S.A.", "the u s a."),
        ("the BBC said", "the b b c said"),
        ("the BBC's man", "the b b c's man"),
        ("NASA said", "nasa said"),
        ("J. F. Kennedy", "j f kennedy"),
        ("So do I. He left", "so do i. he left"),
        ("TELL US NOW", "tell us now"),
        ("Henry VIII", "henry the eighth"),
        ("Chapter IV", "chapter four"),
        ("World War II", "world war two"),
        ("example.com", "example dot com"),
        ("F-16", "f-sixteen"),
    ]);
}

#[test]
fn signs_and_phone_numbers_are_read() {
    check_all(&[
        ("Tom & Jerry", "tom and jerry"),
        ("a@b", "a at b"),
        ("#1", "number one"),
        ("and/or", "and or"),
        ("~50", "about fifty"),
        ("§ 5", "section five"),
        ("call 555-1234", "call five five five, one two three four"),
        (
            "978-3-16-148410-0",
            "nine seven eight, three, one six, one four eight four one zero, zero",
        ),
        (
            "4111 1111 1111 1112",
            "four one one one, one one one one, one one one one, one one one two",
        ),
        ("1-800-555-1234", "one, eight zero zero, five five five, one two three four"),
        ("10-20", "ten to twenty"),
        ("“ﬁne”", "\"fine\""),
    ]);
}

#[test]
fn unknown_signs_stay_in_the_text() {
    check("a ★ b", "a ★ b");
    check("10⁶", "ten to the sixth");
}

/// Bytes of digits that the scans look at, for each byte of the text.
#[track_caller]
fn check_work(text: &str) {
    use super::super::numeral::LOOKED_AT;
    LOOKED_AT.with(|count| count.set(0));
    let read = normalize(text);
    let looked_at = LOOKED_AT.with(std::cell::Cell::get);
    assert!(looked_at <= 400 * text.len(), "{looked_at} bytes for {}: {}", text.len(), &text[..20]);
    assert!(!read.is_empty());
}

#[test]
fn long_runs_of_numbers_are_read_in_linear_time() {
    for unit in [
        "7 ", "555 ", "1-", "1/", "1.", "1,", "1:", "12345/", "0201 ", "+44 ", "(212) ", "1a",
        "$5-", "20% ", "1=", "1+", "A1-",
    ] {
        check_work(&unit.repeat(3000));
    }
    check_work(&"7".repeat(100_000));
    check_work(&format!("{}x", "1.".repeat(50_000)));
}
