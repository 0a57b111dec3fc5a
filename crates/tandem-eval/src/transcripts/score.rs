//! How suspicious a row is, compared with the others of its corpus.
//!
//! In: the scores of each row. Out: suspicion with reasons, the order, and advice about the corpus.
//! How much better a right text fits depends on the corpus and on the training of the voice. So a row
//! is compared with the median of all rows, in units of a robust standard deviation.

use super::Ranked;
use serde::Serialize;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};

/// Sum of deviations from which a row is suspicious. In the demo corpus with ten swapped texts, after
/// 400 steps, the ten have 4.4 or more and the 124 others at most 3.7. In the unchanged corpus, two
/// of 134 rows are above.
const FAR: f64 = 4.3;
/// Weight of an uneven pace, compared with the text itself.
const PACE_SHARE: f64 = 0.5;
/// Lower limits of the deviations of evenness, margin and lead, so that a uniform corpus has no
/// suspicious rows.
const LEAST_DEVIATIONS: [f64; 3] = [0.025, 0.1, 0.1];
/// With a smaller median lead the voice cannot distinguish texts. On the demo corpus it is 0.00
/// after 100 steps, 0.07 after 200 and 0.2 after 400.
const LEAST_LEAD: f64 = 0.05;
/// Above this share of suspicious rows, the cause is likely not in single rows.
const MANY: f64 = 0.2;

/// Medians over the rows of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Typical {
    /// Share of symbols with a plausible duration.
    pub coverage: f64,
    /// How even the pace is.
    pub diagonality: f64,
    /// How ambiguous the symbol of a frame is.
    pub entropy: f64,
    /// Mean squared distance between frames and predicted frames.
    pub misfit: f64,
    /// By which share the own text explains frames better than others of its length.
    pub margin: Option<f64>,
    /// By which share the own text explains frames better than the best other text.
    pub lead: Option<f64>,
    /// Robust standard deviations of evenness, margin and lead.
    pub deviations: [f64; 3],
}

impl Typical {
    pub fn of(rows: &[Ranked]) -> Typical {
        let all = |value: fn(&Ranked) -> Option<f64>| -> Vec<f64> {
            rows.iter().filter_map(value).collect()
        };
        let known = |values: &[f64]| (!values.is_empty()).then(|| median(values.to_vec()));
        let evenness = all(|row| Some(row.health.diagonality));
        let (margins, leads) = (all(|row| row.margin), all(|row| row.lead));
        Typical {
            coverage: median(all(|row| Some(row.health.coverage))),
            diagonality: median(evenness.clone()),
            entropy: median(all(|row| row.health.entropy)),
            misfit: median(all(|row| Some(row.misfit))),
            margin: known(&margins),
            lead: known(&leads),
            deviations: [evenness, margins, leads].map(|values| deviation(&values)),
        }
    }

    /// Whether the voice can distinguish right texts from wrong ones.
    pub fn can_tell(&self) -> bool {
        self.lead.is_some_and(|lead| lead >= LEAST_LEAD)
    }
}

/// By which share the own text explains frames better than the median of others; none without
/// others.
pub fn margin(own: f64, others: Vec<f64>) -> Option<f64> {
    (!others.is_empty()).then(|| ahead(own, median(others)))
}

/// By which share one misfit is smaller than another.
pub fn ahead(own: f64, other: f64) -> f64 {
    if other > 0.0 { 1.0 - own / other } else { 0.0 }
}

/// Sets suspicion and reasons of every row, and sorts the most suspicious first. Returns how many
/// should be checked.
pub fn rank(rows: &mut [Ranked], typical: &Typical, limits: &HealthLimits) -> usize {
    for row in rows.iter_mut() {
        row.suspicion = suspicion(row, typical, limits);
        if row.suspicion >= 1.0 {
            row.reasons = reasons(row, typical, limits);
        }
    }
    rows.sort_by(|a, b| b.suspicion.total_cmp(&a.suspicion).then_with(|| a.id.cmp(&b.id)));
    if !typical.can_tell() {
        return 0;
    }
    rows.iter().filter(|row| row.suspicion >= 1.0).count()
}

fn suspicion(row: &Ranked, typical: &Typical, limits: &HealthLimits) -> f64 {
    let below = |own: Option<f64>, usual: Option<f64>, deviation: f64| {
        let apart = own.zip(usual).map(|(own, usual)| usual - own);
        apart.unwrap_or_default() / deviation
    };
    let at_least = |sign: usize| typical.deviations[sign].max(LEAST_DEVIATIONS[sign]);
    let [evenness, margin, lead] = [0, 1, 2].map(at_least);
    let pace = below(Some(row.health.diagonality), Some(typical.diagonality), evenness).max(0.0);
    let text = below(row.margin, typical.margin, margin) + below(row.lead, typical.lead, lead);
    ((text + PACE_SHARE * pace) / FAR).max(0.0) + row.health.suspicion(limits)
}

fn reasons(row: &Ranked, typical: &Typical, limits: &HealthLimits) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut reasons = Vec::new();
    if let Some((own, usual)) = row.margin.zip(typical.margin).filter(|(own, usual)| own < usual) {
        reasons.push(match own > 0.0 {
            true => format!(
                "its text explains the recording {} better than other texts of its length, \
                 the median is {}",
                percent(own),
                percent(usual)
            ),
            false => "other texts of its length explain the recording as well or better".into(),
        });
    }
    if let Some(better) = &row.better {
        reasons.push(format!("the text of `{better}` fits better"));
    }
    let (own, usual) = (row.health.diagonality, typical.diagonality);
    // Below the limit of every alignment, the findings say it.
    if own >= limits.diagonality && own < usual - 2.0 * typical.deviations[0] {
        reasons.push(format!("its pace is uneven: {own:.2}, the median is {usual:.2}"));
    }
    reasons.extend(row.health.findings(limits).into_iter().map(|finding| finding.fact));
    reasons
}

/// Findings about the whole corpus.
pub fn findings(
    typical: &Typical,
    limits: &HealthLimits,
    suspicious: usize,
    rows: usize,
    unranked: usize,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut finding = |fact: String, advice| found.push(Finding { fact, advice });
    if !typical.can_tell() {
        finding(
            format!(
                "the voice cannot tell right texts from wrong ones yet: right ones fit {:.0} % better, \
                 {:.0} % are needed",
                100.0 * typical.lead.unwrap_or_default(),
                100.0 * LEAST_LEAD
            ),
            "continue training for some hundred steps and try again; until then, the order is unreliable",
        );
    } else if suspicious as f64 > MANY * rows as f64 {
        finding(
            format!(
                "{suspicious} of {rows} transcripts are suspicious: too many for errors in single rows"
            ),
            "check that the rows of the manifest are not shifted, and that its columns are the right ones",
        );
    } else if suspicious > 0 {
        finding(
            format!("{suspicious} of {rows} transcripts hardly explain their recordings"),
            "listen to these recordings and compare the text; correct or remove those rows, and train again",
        );
    }
    if unranked > 0 {
        finding(
            format!("{unranked} rows cannot be aligned to their recordings"),
            "repair or remove them: training skips them",
        );
    }
    let health = AlignmentHealth {
        coverage: typical.coverage,
        monotonic: 1.0,
        diagonality: typical.diagonality,
        entropy: Some(typical.entropy),
    };
    found.extend(health.findings(limits));
    found
}

/// Robust standard deviation: 1.4826 times the median absolute deviation.
fn deviation(values: &[f64]) -> f64 {
    let middle = median(values.to_vec());
    1.4826 * median(values.iter().map(|value| (value - middle).abs()).collect())
}

/// 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    tandem_units::median(&mut values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcripts::repeats;
    use tandem_disk::Fingerprint;
    use tandem_units::Seconds;

    fn row(number: usize, margin: f64, lead: f64, diagonality: f64) -> Ranked {
        let health =
            AlignmentHealth { coverage: 1.0, monotonic: 1.0, diagonality, entropy: Some(0.4) };
        Ranked {
            id: format!("row {number}"),
            manifest: "metadata.csv".into(),
            line: number as u32,
            language: "en".into(),
            text: "words".into(),
            suspicion: 0.0,
            reasons: Vec::new(),
            health,
            misfit: 0.2,
            margin: Some(margin),
            lead: Some(lead),
            better: (lead < 0.0).then(|| "row 1".into()),
            audio: "a.wav".into(),
            seconds: Seconds(2.0),
            symbols_per_second: 12.0,
            same_text: Vec::new(),
            same_recording: Vec::new(),
            recording: Fingerprint::default(),
        }
    }

    /// Thirty rows with scores like those of the demo corpus.
    fn typical_rows() -> Vec<Ranked> {
        let wave = |number: usize| ((number * 7) % 11) as f64 / 11.0 - 0.5;
        (0..30)
            .map(|n| {
                row(n, 0.25 + 0.2 * wave(n), 0.2 + 0.15 * wave(n + 3), 0.95 + 0.03 * wave(n + 5))
            })
            .collect()
    }

    fn ranked(rows: &mut [Ranked]) -> (usize, Vec<Finding>) {
        let (typical, limits) = (Typical::of(rows), HealthLimits::SPEECH);
        let suspicious = rank(rows, &typical, &limits);
        (suspicious, findings(&typical, &limits, suspicious, rows.len(), 0))
    }

    #[test]
    fn rows_with_the_text_or_the_recording_of_others_name_them() {
        let mut rows = typical_rows();
        for (number, row) in rows.iter_mut().enumerate() {
            row.text = format!("text {}", number.max(2));
            row.recording = Fingerprint::of(&[number.min(28) as u8]);
        }
        repeats::mark(&mut rows);
        assert_eq!(rows[0].same_text, ["row 1", "row 2"]);
        assert_eq!(rows[28].same_recording, ["row 29"]);
        assert!(rows[5].same_text.is_empty() && rows[5].same_recording.is_empty());
    }

    #[test]
    fn rows_whose_text_fits_no_better_than_others_come_first_with_reasons() {
        let mut rows = typical_rows();
        rows.insert(11, row(40, -0.02, -0.1, 0.9));
        rows.insert(23, row(41, 0.01, -0.2, 0.93));
        let (suspicious, findings) = ranked(&mut rows);
        assert_eq!(suspicious, 2, "{:?}", &rows[..4]);
        let first: Vec<&str> = rows[..2].iter().map(|row| row.id.as_str()).collect();
        assert!(first.contains(&"row 40") && first.contains(&"row 41"), "{first:?}");
        let reasons: String = rows[..2].iter().flat_map(|row| row.reasons.clone()).collect();
        assert!(reasons.contains("as well or better"), "{reasons}");
        assert!(reasons.contains("the text of `row 1` fits better"), "{reasons}");
        assert!(findings[0].fact.starts_with("2 of 32 transcripts"), "{findings:?}");
    }

    #[test]
    fn a_uniform_corpus_has_no_suspicious_rows() {
        let mut rows = typical_rows();
        assert_eq!(ranked(&mut rows), (0, Vec::new()));
        assert!(rows.iter().all(|row| row.reasons.is_empty()), "{rows:?}");
    }

    #[test]
    fn an_undertrained_voice_gives_no_suspicious_rows_but_a_finding() {
        let mut rows: Vec<Ranked> = (0..9).map(|n| row(n, 0.02, 0.001, 0.95)).collect();
        rows.push(row(9, -0.9, -0.9, 0.95));
        let (suspicious, findings) = ranked(&mut rows);
        assert_eq!(suspicious, 0);
        assert!(findings[0].fact.contains("cannot tell"), "{findings:?}");
    }

    #[test]
    fn medians_and_deviations() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(deviation(&[1.0, 2.0, 3.0, 4.0, 100.0]), 1.4826);
        assert_eq!(margin(0.5, vec![0.25, 1.0, 2.0]), Some(0.5));
        assert_eq!(margin(0.5, vec![]), None);
    }
}
