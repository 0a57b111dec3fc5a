//! The page to type and listen in, in English and Persian.
//!
//! In: what the server offers. Out: one document; its script asks this server for the list of voices and
//! for speech, and plays each sentence as it arrives.

use crate::request::Offer;
use maud::{DOCTYPE, html};
use tandem_page::Lang;
use tandem_page::render::STYLE;

/// The script of the page.
pub(crate) const SCRIPT: &str = include_str!("page/serve.js");
const OWN_STYLE: &str = include_str!("page/serve.css");

/// The style of every page of the program, and what only this one needs.
pub(crate) fn style() -> String {
    format!("{STYLE}{OWN_STYLE}")
}

pub(crate) fn document(offer: &Offer, token: bool, lang: Lang) -> String {
    let say = |english: &'static str, persian: &'static str| lang.say(english, persian);
    let other = lang.say(Lang::Fa, Lang::En);
    let title = say("Speech", "گفتار");
    let sample =
        say("Good morning. This is a test of the voice.", "صبح بخیر. این یک آزمایش صداست.");
    let document = html! {
        (DOCTYPE)
        html lang=(lang.code()) dir=(lang.direction()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · " (offer.model) }
                // An empty picture: browsers otherwise ask for one.
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/page.css";
                script src="/serve.js" defer {}
            }
            body data-model=(offer.model)
                data-waiting=(say("synthesizing …", "در حال ساخت گفتار …"))
                data-playing=(say("first sound after {} s", "نخستین صدا پس از {} ثانیه"))
                data-done=(say("{} s of speech", "{} ثانیه گفتار"))
                data-stopped=(say("stopped", "متوقف شد"))
                data-lost=(say("the server does not answer", "سرور پاسخ نمی‌دهد")) {
                header {
                    div.title {
                        h1 { (title) }
                        span.side {
                            a href={ "/?lang=" (other.code()) } lang=(other.code()) {
                                (other.say("English", "فارسی"))
                            }
                        }
                    }
                    p #subtitle { code { (offer.model) } }
                }
                main {
                    section {
                        form #form autocomplete="off" {
                            label for="text" { (say("Text", "متن")) }
                            textarea #text dir="auto" rows="5" maxlength=(offer.max_text) required { (sample) }
                            div.controls {
                                label { (say("Voice", "صدا")) select #voice {} }
                                label { (say("Speed", "سرعت"))
                                    input #speed type="number" min="0.25" max="4" step="0.05" value="1" dir="ltr";
                                }
                                @if token {
                                    label { (say("Token", "رمز دسترسی"))
                                        input #token type="password" dir="ltr" required;
                                    }
                                }
                                button #speak type="submit" { (say("Speak", "بخوان")) }
                                button #stop type="button" disabled { (say("Stop", "توقف")) }
                            }
                        }
                        p #status role="status" {}
                        audio #result controls hidden {}
                        p { a #save hidden download="speech.wav" { (say("Save as WAV", "ذخیره به‌صورت WAV")) } }
                    }
                }
                footer { (say("Nothing leaves this server.", "هیچ داده‌ای از این سرور بیرون نمی‌رود.")) }
            }
        }
    };
    document.into_string()
}
