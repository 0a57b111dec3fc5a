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

/// Key names whose values are secret.
const SECRETS: [&str; 7] =
    ["password", "passwd", "secret", "token", "apikey", "credential", "credentials"];

impl Redactor {
    /// The text as it may be shared.
    pub fn redact(&self, text: &str) -> String {
        let lines = text.split('\n').map(|line| without_secret(&without_login(line)));
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

/// A name and password in an address: `https://name:word@host`.
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

/// The value of a key that is called like a secret, in `key = value`, `key: value` or JSON.
fn without_secret(line: &str) -> String {
    let Some(at) = line.find(['=', ':']) else { return line.to_string() };
    let (key, value) = line.split_at(at);
    let name = key.to_lowercase().replace("api_key", "apikey").replace("api-key", "apikey");
    // Whole words: a number of tokens is no secret.
    let mut words = name.split(|letter: char| !letter.is_alphanumeric());
    let is_secret = words.any(|word| SECRETS.contains(&word));
    if !is_secret || value[1..].trim().is_empty() {
        return line.to_string();
    }
    format!("{key}{} [secret]", &value[..1])
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
        check("  \"hf-token\": \"abc\",", "  \"hf-token\": [secret]");
        check("WANDB_API_KEY=abc", "WANDB_API_KEY= [secret]");
        check("url: https://me:pw@host/x", "url: https://[secret]@host/x");
        check("batch_size = 16", "batch_size = 16");
        check("max_tokens: 3", "max_tokens: 3");
        check("token:", "token:");
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
        fn any_text_is_no_trouble(text in "\\PC{0,60}", user in "\\PC{0,6}") {
            let who = Redactor { home: Some(user.clone()), user: Some(user.clone()), host: Some(user) };
            let _ = who.redact(&text);
        }
    }
}
