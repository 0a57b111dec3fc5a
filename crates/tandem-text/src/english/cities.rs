//! Cities of the United States, for the state after them: `Tulsa, OK`, but not `Well, OK`.

/// Whether the words before a comma end with a city, or with `County`. `head` is the text before the comma.
pub fn ends_with_city(head: &str) -> bool {
    let mut words: Vec<String> = head
        .rsplit(|c: char| !(c.is_alphabetic() || matches!(c, '.' | '\'')))
        .take(3)
        .take_while(|word| word.starts_with(char::is_uppercase))
        .map(|word| word.trim_end_matches('.').to_lowercase())
        .collect();
    words.reverse();
    (0..words.len()).any(|from| {
        let name = words[from..].join(" ");
        name.ends_with(" county") || CITIES.contains(&name.as_str())
    })
}

#[rustfmt::skip]
const CITIES: &[&str] = &[
    "albany", "albuquerque", "alexandria", "allentown", "amarillo", "anaheim", "anchorage", "ann arbor", "arlington", "asheville",
    "athens", "atlanta", "augusta", "aurora", "austin", "bakersfield", "baltimore", "bangor", "baton rouge", "beaumont",
    "bellevue", "berkeley", "billings", "birmingham", "bismarck", "bloomington", "boise", "boston", "boulder", "bridgeport",
    "brooklyn", "brownsville", "buffalo", "burbank", "burlington", "cambridge", "camden", "canton", "carson city", "casper", "cedar rapids",
    "chandler", "charleston", "charlotte", "charlottesville", "chattanooga", "cheyenne", "chicago", "cincinnati", "clearwater",
    "cleveland", "colorado springs", "columbia", "columbus", "concord", "corpus christi", "cupertino", "dallas", "davenport", "dayton",
    "decatur", "denver", "des moines", "detroit", "dover", "duluth", "durham", "el paso", "elgin", "erie", "eugene", "evanston",
    "evansville", "fairbanks", "fargo", "fayetteville", "flagstaff", "flint", "fort collins", "fort lauderdale", "fort wayne",
    "fort worth", "frankfort", "fremont", "fresno", "gainesville", "galveston", "gary", "glendale", "grand rapids", "green bay",
    "greensboro", "greenville", "hampton", "harrisburg", "hartford", "helena", "hoboken", "hollywood", "honolulu", "houston", "huntsville",
    "indianapolis", "iowa city", "irvine", "ithaca", "jackson", "jacksonville", "jefferson city", "jersey city", "joliet", "juneau",
    "kalamazoo", "kansas city", "key west", "knoxville", "lafayette", "lakewood", "lansing", "laredo", "las vegas", "lawrence", "lexington",
    "lincoln", "little rock", "long beach", "los angeles", "louisville", "lowell", "lubbock", "macon", "madison", "manchester", "marietta",
    "memphis", "mesa", "miami", "milwaukee", "minneapolis", "mobile", "modesto", "montgomery", "montpelier", "mountain view", "muncie",
    "nashville", "new haven", "new orleans", "new york", "new york city", "newark", "newport", "norfolk", "norman", "oakland", "ogden",
    "oklahoma city", "olympia", "omaha", "orlando", "oxford", "palm springs", "palo alto", "pasadena", "paterson", "pensacola", "peoria",
    "philadelphia", "phoenix", "pierre", "pittsburgh", "plano", "portland", "princeton", "providence", "provo", "queens", "raleigh",
    "rapid city", "redmond", "redwood city", "reno", "richmond", "riverside", "roanoke", "rochester", "rockford", "sacramento", "saint louis",
    "saint paul", "salem", "salt lake city", "san antonio", "san bernardino", "san diego", "san francisco", "san jose", "santa ana",
    "santa barbara", "santa clara", "santa cruz", "santa fe", "santa monica", "sarasota", "savannah", "schenectady", "scottsdale",
    "scranton", "seattle", "shreveport", "sioux city", "sioux falls", "south bend", "spokane", "springfield", "st louis", "st paul",
    "st petersburg", "stamford", "stockton", "sunnyvale", "syracuse", "tacoma", "tallahassee", "tampa", "tempe", "toledo", "topeka",
    "trenton", "tucson", "tulsa", "tuscaloosa", "utica", "vancouver", "waco", "washington", "waterbury", "wichita", "wilmington",
    "winston salem", "worcester", "yonkers", "youngstown", "yuma",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cities_are_known_by_their_last_words() {
        for head in ["Tulsa", "He left St. Louis", "in San Francisco", "from Orange County"] {
            assert!(ends_with_city(head), "{head}");
        }
        for head in ["Well", "Sorry", "He said yes", "the county", "tulsa", ""] {
            assert!(!ends_with_city(head), "{head}");
        }
    }
}
