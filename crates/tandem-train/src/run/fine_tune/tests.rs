use super::*;
use tandem_model::checkpoint::Values;

fn matrix(rows: &[[f32; 2]]) -> Matrix {
    (vec![rows.len(), 2], rows.concat())
}

#[test]
fn rows_are_taken_by_name_and_new_ones_stay_as_they_were_drawn() {
    let old = matrix(&[[1.0, 1.5], [2.0, 2.5]]);
    let fresh = matrix(&[[9.0, 9.0], [8.0, 8.0], [7.0, 7.0]]);
    // The languages of the old voice are en, fa; of the new one de, fa, en.
    let place = |row: usize| [None, Some(1), Some(0)][row];
    let merged = merge_rows(fresh, old.clone(), place);
    assert_eq!(merged, matrix(&[[9.0, 9.0], [2.0, 2.5], [1.0, 1.5]]));
    // A table of symbols that only grew.
    let fresh = matrix(&[[9.0, 9.0], [8.0, 8.0], [7.0, 7.0]]);
    assert_eq!(merge_rows(fresh, old, Some), matrix(&[[1.0, 1.5], [2.0, 2.5], [7.0, 7.0]]));
}

#[test]
fn another_width_is_left_for_the_caller_to_refuse() {
    let wide = (vec![1, 3], vec![0.0; 3]);
    assert_eq!(merge_rows(matrix(&[[1.0, 1.0]]), wide.clone(), Some), wide);
}

#[test]
fn a_symbol_without_a_gradient_counts_as_new() {
    let mut moments = TensorSet::new();
    let squares = vec![0.0, 0.0, 0.1, 0.0, 0.0, 1e-30];
    let name = format!("square.{SYMBOL_ROWS}");
    moments.insert(&name, &[3, 2], Values::F32(squares)).unwrap();
    let known = |moments| trained_symbols(moments, 3).into_iter().collect::<Vec<_>>();
    assert_eq!(known(Some(&moments)), [1, 2]);
    assert_eq!(known(None), [0, 1, 2]);
}

fn taken_over() -> TakenOver {
    TakenOver {
        from: "runs/many".into(),
        checkpoint: "runs/many/step-00000600".into(),
        step: 600,
        languages: vec!["en".into()],
        new_languages: vec!["de".into()],
        kept_languages: vec!["fa".into()],
        symbols: 30,
        new_symbols: vec!["ß".into(), "ü".into()],
        speakers: 1,
        kept_speakers: 6,
    }
}

#[test]
fn what_was_taken_over_is_said_in_four_lines() {
    let said = taken_over().to_string();
    let expected = "fine-tuning: all weights of step 600 in runs/many/step-00000600
  languages  en taken over; de new; fa kept, not in the corpus
  symbols    30 of the corpus taken over, 2 new: ß ü
  speakers   1 of the corpus, 6 of the voice kept";
    assert_eq!(said, expected);
    let plain = TakenOver { new_symbols: vec![], new_languages: vec![], ..taken_over() };
    assert!(plain.to_string().contains("en taken over; fa kept"), "{plain}");
    assert!(plain.to_string().contains("30 of the corpus taken over, none new"), "{plain}");
}

#[test]
fn the_same_voice_by_another_path_is_the_same_voice() {
    let folder = tempfile::tempdir().unwrap();
    let voice = folder.path().join("voice");
    std::fs::create_dir(&voice).unwrap();
    let taken = TakenOver { from: voice.clone(), ..taken_over() };
    assert!(taken.is_from(&voice) && taken.is_from(&folder.path().join("./voice/")));
    assert!(!taken.is_from(folder.path()));
    // A voice that was moved away is still known by its name.
    assert!(taken_over().is_from(Path::new("runs/many")));
}
