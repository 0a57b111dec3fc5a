//! Takes out of a text what should not be shared.
//!
//! In: any text, and who and where its writer is ([`Redactor`]). Out: the same text with home
//! directory, user name and host name replaced, and values that look like secrets. It
//! cannot find every secret: users should review a text before they share it.

/// Who and where the writer is. What is not known is not replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redactor {
    pub home: Option<String>,
    pub user: Option<String>,
    pub host: Option<String>,
}

/// Common user names and words: replaced inside of paths only.
const COMMON: [&str; 8] = ["root", "user", "admin", "test", "ubuntu", "home", "data", "train"];

/// Words of a key whose value is secret.
const SECRETS: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "secrets",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
    "auth",
    "bearer",
    "cookie",
    "jwt",
    "signature",
];
/// What a word `key` is a secret after: `api_key`, `AccountKey`.
const KEY_KINDS: [&str; 10] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "ssh",
    "encryption",
    "storage",
    "shared",
];
/// How tokens of known services begin, and how many characters they have at least.
const TOKEN_STARTS: [(&str, usize); 22] = [
    ("sk-", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 30),
    ("ya29.", 16),
    ("eyJ", 30),
    ("npm_", 20),
    ("pypi-", 16),
    ("dop_v1_", 20),
    ("SG.", 20),
];

impl Redactor {
    /// The text as it may be shared.
    pub fn redact(&self, text: &str) -> String {
        let text = without_private_keys(text);
        let lines =
            text.split('\n').map(|line| without_tokens(&without_secrets(&without_login(line))));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        // The longest first: the home directory holds the user's name.
        let home = self.home.as_deref().map(|home| home.trim_end_matches('/'));
        if let Some(home) = home.filter(|home| !home.is_empty()) {
            let whole = |before, after| !is_word(before) && !is_word(after);
            text = replace_word(&text, home, "~", whole);
        }
        if let Some(user) = self.user.as_deref().filter(|user| !user.is_empty()) {
            let common = COMMON.contains(&user) || user.chars().count() < 3;
            text = replace_word(&text, user, "[user]", |before, after| {
                let whole = !is_letter(before) && !is_letter(after);
                let in_path = matches!(before, Some('/' | '\\' | '~'));
                whole && (in_path || !common)
            });
        }
        if let Some(host) =
            self.host.as_deref().filter(|host| !host.is_empty() && *host != "localhost")
        {
            text = replace_word(&text, host, "[host]", |before, after| {
                !is_letter(before) && !is_letter(after)
            });
        }
        text
    }
}

/// A name may be part of a longer one, such as `mina-data`.
fn is_letter(letter: Option<char>) -> bool {
    letter.is_some_and(char::is_alphanumeric)
}

fn is_word(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
}

/// Replaces a word where what stands before and after it allows.
fn replace_word(
    text: &str,
    word: &str,
    with: &str,
    fits: impl Fn(Option<char>, Option<char>) -> bool,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let after = &found[word.len()..];
        let fits = fits(out.chars().next_back(), after.chars().next());
        out.push_str(if fits { with } else { word });
        rest = after;
    }
    out + rest
}

/// Names and passwords in addresses: `https://name:word@host`.
fn without_login(line: &str) -> String {
    let Some((before, rest)) = line.split_once("://") else { return line.to_string() };
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''))
        .unwrap_or(rest.len());
    let (place, tail) = rest.split_at(end);
    let place =
        place.rsplit_once('@').map_or(place.to_string(), |(_, host)| format!("[secret]@{host}"));
    format!("{before}://{place}{}", without_login(tail))
}

/// Tokens of known services, by their shape and wherever they are.
fn without_tokens(line: &str) -> String {
    let part_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let start = rest.find(part_of_token).unwrap_or(rest.len());
        let (before, found) = rest.split_at(start);
        let end = found.find(|c| !part_of_token(c)).unwrap_or(found.len());
        let (word, after) = found.split_at(end);
        let known =
            |(begin, least): &(&str, usize)| word.starts_with(begin) && word.len() >= *least;
        out.push_str(before);
        out.push_str(if TOKEN_STARTS.iter().any(known) { "[secret]" } else { word });
        rest = after;
    }
    out
}

/// The value of every key that is called like a secret: `key = value`, `key: value`, JSON, inline tables, `--key value`.
fn without_secrets(line: &str) -> String {
    let part_of_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    loop {
        let start = rest.find(part_of_key).unwrap_or(rest.len());
        let (before, found) = rest.split_at(start);
        out.push_str(before);
        if found.is_empty() {
            return out;
        }
        let end = found.find(|c| !part_of_key(c)).unwrap_or(found.len());
        let (key, after) = found.split_at(end);
        out.push_str(key);
        rest = after;
        if let Some((sign, value)) = value_after(key, after)
            && is_secret(key)
            && !value.is_empty()
        {
            out.push_str(sign);
            out.push_str("[secret]");
            rest = &after[sign.len() + value.len()..];
        }
    }
}

/// What stands between a key and its value, and the value.
fn value_after<'a>(key: &str, after: &'a str) -> Option<(&'a str, &'a str)> {
    let inner = after.trim_start_matches(['"', '\'', ']', '\\']).trim_start();
    let assigned = inner.starts_with(['=', ':']);
    if !assigned && !key.starts_with("--") {
        return None;
    }
    let value = inner.trim_start_matches(['=', ':', '>']).trim_start();
    let sign = &after[..after.len() - value.len()];
    // Behind a flag without a sign, a value ends at the next space; elsewhere it may have several words.
    let end = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |at| at + 2),
        // A list or table of secrets.
        Some('[' | '{') if assigned => value.len(),
        _ if assigned => value.find([',', ';', '}', '&']).unwrap_or(value.len()),
        _ => value.find(char::is_whitespace).unwrap_or(value.len()),
    };
    Some((sign, &value[..end]))
}

/// Whether a key names a secret. Whole words: a number of tokens is none.
fn is_secret(key: &str) -> bool {
    let words = words_of(key);
    let named = |word: &String| SECRETS.contains(&word.as_str());
    let key_of = |pair: &[String]| {
        KEY_KINDS.contains(&pair[0].as_str()) && matches!(pair[1].as_str(), "key" | "keys")
    };
    words.iter().any(named) || words.windows(2).any(key_of)
}

/// `accessToken`, `API_KEY`, `hf-token`: words in lower case.
fn words_of(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let mut words = vec![String::new()];
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let lower_before = before.is_some_and(|c| c.is_lowercase() || c.is_numeric());
        let lower_after =
            before.is_some_and(char::is_uppercase) && after.is_some_and(|c| c.is_lowercase());
        if !letter.is_alphanumeric() || letter.is_uppercase() && (lower_before || lower_after) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The lines between the first and the last line of a private key.
fn without_private_keys(text: &str) -> String {
    let mut inside = false;
    let shown = text.split('\n').filter_map(|line| {
        let begins = line.contains("-----BEGIN ") && line.contains("PRIVATE KEY");
        let was_inside = inside;
        inside = (inside || begins) && !line.contains("-----END ");
        match (was_inside, begins) {
            (true, _) => None,
            (false, true) => Some("[secret]"),
            (false, false) => Some(line),
        }
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mina() -> Redactor {
        Redactor {
            home: Some("/home/mina".into()),
            user: Some("mina".into()),
            host: Some("attic-7".into()),
        }
    }

    #[track_caller]
    fn check(text: &str, shared: &str) {
        assert_eq!(mina().redact(text), shared);
    }

    #[test]
    fn home_user_and_host_are_replaced() {
        check("corpus /home/mina/voices/a.wav", "corpus ~/voices/a.wav");
        check("/media/mina/disk, mina@attic-7", "/media/[user]/disk, [user]@[host]");
        check("/home/minas/x determination attic-77", "/home/minas/x determination attic-77");
        check("/home/mina-2/a /x/mina-data/b", "/home/[user]-2/a /x/[user]-data/b");
        check("events.1794.attic-7 C:\\Users\\mina", "events.1794.[host] C:\\Users\\[user]");
    }

    #[test]
    fn a_home_of_slashes_replaces_nothing() {
        for home in ["", "/", "//"] {
            let redactor = Redactor { home: Some(home.into()), ..Redactor::default() };
            assert_eq!(redactor.redact("/a//b"), "/a//b");
        }
    }

    #[test]
    fn a_common_name_is_replaced_in_paths_only() {
        let root = Redactor { home: Some("/root".into()), user: Some("root".into()), host: None };
        assert_eq!(
            root.redact("the root of /root/x and /srv/root/y"),
            "the root of ~/x and /srv/[user]/y"
        );
    }

    #[test]
    fn secrets_are_taken_out_by_the_name_of_their_key() {
        check("api_key = \"abc\"", "api_key = [secret]");
        check("  \"hf-token\": \"abc\",", "  \"hf-token\": [secret],");
        check("WANDB_API_KEY=abc", "WANDB_API_KEY=[secret]");
        check("url: https://me:pw@host/x", "url: https://[secret]@host/x");
        check("batch_size = 16", "batch_size = 16");
        check("max_tokens: 3", "max_tokens: 3");
        check("token:", "token:");
        check("a = 1, token = \"x y\", b = 2", "a = 1, token = [secret], b = 2");
        check("12:30:01 password: two words", "12:30:01 password: [secret]");
        check("run --secret_key abc --steps 3", "run --secret_key [secret] --steps 3");
    }

    /// Places of a secret in a text, by format; `@` is the secret.
    const FORMATS: [&str; 12] = [
        "KEY = \"@\"",
        "table = { name = \"x\", KEY = \"@\", size = 3 }",
        "{\"name\": \"x\", \"KEY\": \"@\", \"size\": 3}",
        "  KEY: '@'  # a comment",
        "KEY: @",
        "export KEY=@",
        "2026-01-02T10:20:30Z INFO loaded KEY=@",
        "tandem train --KEY @ --max-steps 3",
        "tandem train --KEY=@ --max-steps 3",
        "[\"KEY\"] = [\"@\", \"@\"]",
        "https://host/path?x=1&KEY=@&y=2",
        "{'outer': {'KEY': u'@'}}",
    ];

    #[test]
    fn sixty_secrets_in_twelve_formats_are_taken_out() {
        let keys =
            ["accessToken", "secret_key", "Authorization", "AWS_SECRET_ACCESS_KEY", "dbPassword"];
        let mut planted = 0;
        for format in FORMATS {
            for key in keys {
                let secret = format!("Zq7{planted}vLw9");
                let value = if key == "Authorization" && !format.contains("--") {
                    format!("Bearer {secret}")
                } else {
                    secret.clone()
                };
                let text = format.replace("KEY", key).replace('@', &value);
                let shared = mina().redact(&text);
                assert!(!shared.contains(&secret), "{text} -> {shared}");
                planted += 1;
            }
        }
        assert_eq!(planted, 60);
    }

    #[test]
    fn tokens_of_known_services_are_found_by_their_shape() {
        let end = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6";
        for (start, _) in TOKEN_STARTS {
            let text = format!("note \"{start}{end}\" and ({start}{end})");
            assert_eq!(mina().redact(&text), "note \"[secret]\" and ([secret])");
        }
        let key = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb";
        check(key, "a\n[secret]\nb");
        check("ask-about sk-1 hf_x", "ask-about sk-1 hf_x");
    }

    proptest! {
        #[test]
        fn nothing_of_the_writer_is_left(before in "[a-z /]{0,8}", after in "[/ .,a-z]{0,8}") {
            let text = format!("{before} /home/mina/{after} \"mina\" attic-7 ");
            let shared = mina().redact(&text);
            prop_assert!(!shared.contains("/home/mina/") && !shared.contains("\"mina\""), "{shared}");
            prop_assert!(!shared.contains(" attic-7 "), "{shared}");
        }

        #[test]
        fn any_text_can_be_redacted(text in "\\PC{0,60}", user in "\\PC{0,6}") {
            let who = Redactor { home: Some(user.clone()), user: Some(user.clone()), host: Some(user) };
            let _ = who.redact(&text);
        }
    }
}
