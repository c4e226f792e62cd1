"""Requests that are refused, each with the place of the refusal and the changes that it advises.

A request begins with a command; S is `sanitise people.csv --secret job`, T the same with noise that is not from a seed.
A change sets an option, leaves one out (`no --x`), or is another request altogether.
"""

Case = tuple[str, str, list[str]]

CASES: list[Case] = [
    # spec
    ("spec/checks.py check_promise", "S --publish town --epsilon 1 --factor 2", ["no --epsilon", "no --factor"]),
    (
        "spec/checks.py check_promise",
        "S --publish town --epsilon 1 --average 0.1 --average-only",
        ["no --average-only"],
    ),
    (
        "spec/checks.py check_promise",
        "S --secret size --publish town --known town --epsilon 2",
        ["no --known", "sanitise people.csv --secret job,size --publish town,group --known town --epsilon 3"],
    ),
    ("spec/checks.py check_prior", "S --publish town --prior model --population 95%", ["no --population"]),
    (
        "spec/checks.py check_prior",
        "S --publish town --prior model --population 95%",
        ["--prior population --domain domain.json"],
    ),
    (
        "spec/checks.py check_prior",
        "S --publish town --prior table --design-epsilon 0.2",
        ["no --design-epsilon", "--prior model"],
    ),
    ("spec/checks.py check_model", "S --publish town --sees-secret", ["no --sees-secret", "--prior table"]),
    ("spec/checks.py check_model", "S --publish town --keep-order", ["no --keep-order", "--prior table"]),
    ("spec/checks.py check_model", "S --publish town --with-shares", ["no --with-shares", "--prior table"]),
    ("spec/checks.py check_model", "S --publish town --keep rare", ["no --keep", "--prior table"]),
    ("spec/checks.py check_model", "S --publish age --bin age=quantiles:4", ["--bin age=0,10,20", "--prior table"]),
    (
        "spec/checks.py check_population",
        "S --publish town --prior population",
        ["--domain domain.json", "--prior table"],
    ),
    (
        "spec/checks.py refuse_beside",
        "S --publish town --composable 2 --robust 1.5",
        ["no --robust", "no --composable"],
    ),
    (
        "spec/checks.py check_after",
        "sanitise june.csv --after may --known town",
        ["no --known", "S --publish town --known town --method real-or-synthetic"],
    ),
    ("spec/checks.py check_robust", "S --publish town,group --known town --prior table", ["no --known"]),
    (
        "spec/checks.py refuse_beside",
        "S --publish town --robust 1.5 --sees-secret --prior table",
        ["no --robust", "no --sees-secret"],
    ),
    (
        "spec/checks.py refuse_beside",
        "S --publish town --public-labels town --domain domain.json",
        ["no --public-labels", "no --domain"],
    ),
    (
        "spec/checks.py check_private",
        "S --publish town --domain domain.json --prior table",
        ["--prior model", "no --domain"],
    ),
    ("spec/checks.py check_private", "S --publish town --domain domain.json --bin town=prefix:1", ["no --bin"]),
    (
        "spec/checks.py check_private",
        "S --publish town --domain domain.json --with-shares",
        ["no --with-shares", "S --publish town --prior table --with-shares"],
    ),
    (
        "spec/checks.py check_private",
        "S --publish town,group --zeros zeros.csv --prior table",
        ["no --zeros", "--prior model --method auto"],
    ),
    (
        "spec/checks.py check_private",
        "S --publish town --model-table people.csv --domain domain.json",
        ["--design-epsilon 0.2"],
    ),
    (
        "spec/checks.py check_kept",
        "S --publish town --keep rare --prior table --epsilon 1 --average 0.1",
        ["no --keep", "no --average", "--accept-kept", "S --prior table --epsilon 1 --average 0.1 --publish town,rare"],
    ),
    ("spec/checks.py check_key", "T --publish town --key-file month.key", ["--row-id id"]),
    (
        "spec/checks.py check_key",
        "T --publish town --key-file month.key --row-id id --seed 1",
        ["no --key-file", "no --seed"],
    ),
    (
        "spec/checks.py find_source",
        "sanitise people.sqlite --secret job --publish town",
        ["--query select§*§from§people"],
    ),
    ("spec/kinds.py field_error", "S --publish town --epsilon 0,7", ["--epsilon 0.7"]),
    ("spec/kinds.py _check_bins", "S --publish age --bin age=20,40 --bin age=30", ["S --publish age --bin age=20,40"]),
    (
        "spec/release_spec.py ReleaseSpec._size_promise",
        "S --publish town --average 0.1",
        ["--epsilon 1", "--average-only --prior table"],
    ),
    (
        "spec/release_spec.py ReleaseSpec.promise_for",
        "S --publish age --bin age=quantiles:4 --prior table --population 95%",
        ["--bin age=0,40,65", "no --population"],
    ),
    # promises
    (
        "model/each_secret.py Each.of_columns",
        "sanitise people.csv --secret job --secret group --publish town --promise alip:0.5,1",
        ["sanitise people.csv --secret job,group --publish town --promise alip:0.5,1"],
    ),
    ("model/promises.py ALIP.from_text", "S --publish town --promise alip:0.5,1 --epsilon 1", ["no --epsilon"]),
    (
        "model/labelled_promises.py GradedLDP.from_text",
        "S --publish town --promise ldp:graded.csv --epsilon 1 --prior table",
        ["no --epsilon"],
    ),
    (
        "model/labelled_promises.py _neighbours",
        "S --publish town --promise ldp:line --epsilon 1 --prior table",
        ["S --publish town --promise ldp:graded.csv --prior table"],
    ),
    (
        "model/labelled_promises.py Events.from_text",
        "S --publish town --promise events: --epsilon 1 --prior table",
        ["--promise events:groups.csv"],
    ),
    (
        "model/uses/ordinal_scale.py value_positions",
        "S --publish town --for distance",
        ["--ordered town=Graz,Ulm,Wien --prior table", "--for values"],
    ),
    (
        "model/uses/ordinal_scale.py check_orders",
        "S --publish town --ordered town --for distance --prior table",
        ["--ordered town=Graz,Ulm,Wien"],
    ),
    # methods
    (
        "designs/methods.py _design_on_average",
        "S --publish town --epsilon 1 --average 0.1 --sees-secret --prior table",
        ["no --sees-secret"],
    ),
    (
        "designs/methods.py _refuse_without_model",
        "S --publish town --method real-or-synthetic --prior table",
        ["--prior model"],
    ),
    # a published model
    (
        "release/private_design.py refuse_large",
        "S --publish town --epsilon 40",
        ["--domain domain.json", "S --publish town --epsilon 20"],
    ),
    (
        "release/private_design.py fixed_part",
        "S --publish town --epsilon 0.5 --design-epsilon 0.5",
        ["--design-epsilon 0.2", "S --publish town --epsilon 1.5 --design-epsilon 0.5"],
    ),
    ("release/private_design.py fit_or_advise", "S --publish town --epsilon 0.001", ["--epsilon ?", "--prior table"]),
    (
        "release/private_design.py fit_or_advise",
        "S --publish area --epsilon 0.4",
        ["--public-labels ?", "--prior table"],
    ),
    (
        "release/private_design.py refuse_merged",
        "sanitise pilots.csv --secret job --publish town --promise events:groups.csv --epsilon 1",
        ["--prior table", "--public-labels job,town --merge-secrets pilot,miner=other"],
    ),
    ("release/model_design.py _fewest_rows", "S --publish town --merge-rare job=10", ["no --merge-rare"]),
    (
        "release/wide_design.py check_wide",
        "S --publish town,area,rare --composable 2",
        ["S --publish town --composable 2"],
    ),
    (
        "release/wide_design.py _refuse_many_labels",
        "S --publish town,group,id --allow id --epsilon 2",
        ["--bin id=prefix:3", "--bin id=map:ids.csv"],
    ),
    ("release/design.py check_hazards", "S --publish id", ["--allow id --bin id=prefix:4 --prior table"]),
    # rows
    ("tables/readers/column_hazards.py _judge_identifier", "S --publish id", ["--bin id=prefix:4 --prior table"]),
    ("tables/readers/column_hazards.py _judge_day", "S --publish born", ["--bin born=year --prior table"]),
    ("tables/readers/column_hazards.py _judge_place", "S --publish lat", ["--bin lat=48.2,48.4,48.6,48.8"]),
    (
        "tables/coding/coders.py LabelCoder._refuse_numbers",
        "S --publish age",
        ["--bin age=20,40,60,80", "--bin age=values --prior table"],
    ),
    ("tables/coding/coders.py LabelCoder._refuse_numbers", "S --publish wage", ["--bin wage=20,40,60,80"]),
    (
        "tables/coding/normalisation.py _UnexpectedEntries.make_error",
        "S --publish born --bin born=1950,1970",
        ["--bin born=year --prior table"],
    ),
    (
        "tables/coding/normalisation.py _UnexpectedEntries.make_error",
        "S --publish age --bin age=year",
        ["--bin age=0,40,60"],
    ),
    (
        "tables/coding/normalisation.py _UnexpectedEntries._hint",
        "S --publish area --bin area=1,2,3",
        ["S --publish area --prior table"],
    ),
    (
        "tables/coding/merges.py MergeSecrets.merged",
        "sanitise people.csv --secret age --bin age=20,40,60 --merge-secrets 20–39,40–59=mid --publish town",
        ["sanitise people.csv --secret age --bin age=20,60 --publish town"],
    ),
    (
        "tables/coding/encoding.py contingency_from_counts",
        "design counts.csv --secret job --publish age --bin age=quantiles:3 --counts n --prior table --into c.json",
        ["--bin age=0,10,20"],
    ),
    ("tables/readers/persons.py reduce_to_persons", "S --publish town --person-row first", ["--person id"]),
    (
        "tables/readers/persons.py PersonTable._one_row_each",
        "sanitise visits.csv --secret job --publish town --person id --prior table",
        ["--person-row first", "--person-row last"],
    ),
    (
        "tables/databases/query.py Query.__post_init__",
        "sanitise people.sqlite --secret job --publish town --query §",
        ["--query select§*§from§people"],
    ),
    ("tables/databases/query.py Query.database", "S --publish town --query select§1", ["no --query"]),
    (
        "tables/databases/table_target.py TableTarget.parse",
        "S --publish town --into-table people.sqlite",
        ["--into-table people.sqlite#rows"],
    ),
    (
        "tables/databases/table_target.py TableTarget.check",
        "T --publish town --into-table people.sqlite#held",
        ["--force", "T --publish town --into-table people.sqlite#other"],
    ),
    (
        "tables/writers/table_writer.py refuse_unsafe",
        "S --publish town --excel-safe --format parquet",
        ["--format csv", "no --excel-safe"],
    ),
    (
        "tables/writers/table_writer.py _BatchSource.refuse_unwritable",
        "sanitise lists.parquet --secret job --publish town --keep list --accept-kept --prior table --format csv",
        ["--format parquet"],
    ),
    (
        "mechanisms/kept_leakage.py kept_columns_error",
        "S --publish town --keep group --prior table",
        ["S --publish town --prior table", "--accept-kept", "S --publish town,group --prior table"],
    ),
    # what was released before, and files
    (
        "release/ledger/repeats.py refuse_repeat",
        "T --publish town --ledger held",
        ["--again", "--again --publish area --prior table"],
    ),
    ("release/ledger/repeats.py record_noise.refuse", "T --publish town --ledger noised", ["--again", "--try"]),
    (
        "release/ledger/repeats.py noise_counts",
        "T --publish town --epsilon 0.02 --ledger fresh",
        ["--epsilon ? --again", "--prior table --again"],
    ),
    ("release/ledger/ledger_file.py Ledger._access_error", "T --publish town --ledger .", ["--ledger other"]),
    (
        "atomic_files.py _exists_error",
        "S --publish town --into held.folder",
        ["--force", "S --publish town --into other"],
    ),
    (
        "release/release_files.py Destination.of_rows",
        "apply table.json people.csv --parts 2 --keep-order",
        ["no --keep-order"],
    ),
    # another time
    (
        "release/earlier_release.py EarlierRelease.complete_spec",
        "sanitise june.csv --after may --publish age",
        ["no --publish"],
    ),
    (
        "release/earlier_release.py EarlierRelease.load",
        "sanitise june.csv --after unlinked",
        ["sanitise june.csv --after may"],
    ),
    (
        "release/earlier_release.py EarlierRelease.no_budget",
        "sanitise june.csv --after may --epsilon 0.1",
        ["--epsilon 2"],
    ),
    (
        "release/earlier_release.py _check_followable",
        "sanitise june.csv --after bytable",
        ["sanitise june.csv --after may"],
    ),
    (
        "release/bound_table.py refuse_unlinked",
        "apply after/public/protocol.json june.csv",
        ["sanitise june.csv --after may"],
    ),
    ("tables/coding/bins.py refuse_bins", "apply ages.json people.csv --bin age=0,50", ["no --bin"]),
    ("release/bound_table.py BoundTable.measure_leak", "apply model.json people.csv --epsilon 0.5", ["no --epsilon"]),
    ("release/apply.py unknown_rows_error", "apply table.json july.csv", ["--unknown blur", "--unknown drop"]),
    ("release/apply.py refuse_drift", "apply table.json drifted.csv", ["--accept-drift", "--epsilon 9"]),
    (
        "release/row_sampler.py RowSampler.__init__",
        "apply seeing.json july.csv --unknown blur --accept-drift",
        ["--unknown drop"],
    ),
    # audits
    (
        "mechanisms/sealing.py SealedProtocol.require_model",
        "audit table.json",
        ["audit table.json people.csv", "audit model.json"],
    ),
    (
        "audits/protocol_audit.py check_secret",
        "audit table.json people.csv --secret town",
        ["no --secret", "--secret job"],
    ),
    (
        "audits/draw_agreement.py check_columns",
        "audit table.json people.csv --sanitised beside.csv",
        ["--keep rare --sanitised beside.csv"],
    ),
    ("tables/coding/bins.py refuse_bins", "audit ages.json people.csv --bin age=0,50", ["no --bin"]),
    ("audits/matched_table.py secret_labels", "audit table.json people.csv --domain domain.json", ["no --domain"]),
    ("audits/pram.py audit_matrix", "audit --matrix matrix.csv people.csv", ["--secret job"]),
    (
        "mechanisms/input_domain.py Domain.check_secrets",
        "audit table.json people.csv --merge-secrets clerk,miner=other",
        ["no --merge-secrets"],
    ),
    (
        "release/findings/composition_leakage.py _stated_bins",
        "audit ages.json people.csv --with ages2.json",
        ["audit ages.json people.csv --with ages.json"],
    ),
    (
        "estimation/imputation.py posterior",
        "estimate wide/public --posterior post.csv",
        ["--weights w.csv no --posterior", "--impute 2 no --posterior --into i"],
    ),
    (
        "model/each_secret.py split_columns",
        "sanitise joined.csv --secret job --secret town --publish size --prior table",
        ["--prior model --epsilon 3"],
    ),
    ("release/ledger/repeats.py remember", "apply table.json people.csv --ledger applied", ["--again"]),
    (
        "tables/coding/normalisation.py _UnexpectedEntries._hint",
        "S --publish mark --bin mark=1,2",
        ["--na gone", "S --publish mark"],
    ),
]

# Advice that no request above meets: lines of a summary or a page, which refuse nothing; what only Python or a cluster
# asks for; and errors whose advice other tests run.
_LINE, _PYTHON, _CLUSTER = "refuses nothing", "met from Python alone", "met on a cluster alone, with its own tests"
_LARGE, _SOLVER = "needs more values than a test should solve", "needs a solver that did not finish"
_USELESS = "estimation/test_verdict.py::test_a_useless_release_is_refused_and_every_piece_of_advice_helps"
_SHEET = "tables/test_foreign_files.py::test_a_sheet_is_read_and_the_first_unless_another_is_named"
_USES = "cli/test_uses.py::test_a_method_that_a_refusal_names_serves_the_use"
ELSEWHERE: dict[str, str] = {
    "audits/draw_agreement.py _check_seed": "what was drawn must not be published; nothing to follow",
    "audits/noise_audit.py _assign_rows": _LARGE,
    "cli/release_summary.py optimality_text": _LINE,
    "cli/scan_command.py _conclusions": _LINE,
    "cli/scan_command.py _format_epsilon_choices": _LINE,
    "designs/methods.py <module>": "worded as the module is imported",
    "designs/methods.py Method.design": _USES,
    "designs/optimal/optimum.py check_size": _LARGE,
    "designs/optimal/problem_conversion.py check_all_seen": "met with pairs that never occur, and no population since",
    "designs/optimal/problem_conversion.py explain_skew.solve_or_explain": _SOLVER,
    "designs/optimal/solvers.py _check_identifiable": _SOLVER,
    "designs/optimal/solvers.py _solve": _LARGE,
    "designs/optimal/solvers.py minimise_balanced_error": _SOLVER,
    "estimation/verdict.py _advice": _USELESS,
    "estimation/verdict.py refuse_useless": _USELESS,
    "model/composable.py ComposablePromise.__post_init__": _PYTHON,
    "model/composable.py ComposablePromise.comparisons": _PYTHON,
    "model/credal/events.py refuse_scales": _PYTHON,
    "model/each_secret.py Each.__post_init__": _PYTHON,
    "model/each_secret.py Each.reduce": _PYTHON,
    "model/kept_promise.py KeptPromise.__post_init__": _PYTHON,
    "model/labelled_promises.py InteriorPML.from_text": _PYTHON,
    "model/promise_base.py Promise.from_text": _PYTHON,
    "model/promise_base.py Promise.reduce": _PYTHON,
    "release/apply.py load_verified": _PYTHON,
    "release/earlier_release.py _require_channel": (
        "release/test_after.py::test_each_release_that_another_cannot_follow_is_refused_with_what_to_do"
    ),
    "release/design.py count_table": (
        "release/test_impossible_combinations.py"
        "::test_impossible_combinations_of_a_domain_file_are_never_published_or_refused"
    ),
    "release/design.py _neighbours_advised": (
        "release/test_wide_models.py::test_what_can_be_promised_in_place_of_srlip_is_said_and_works"
    ),
    "release/findings/composition_leakage.py _shared_merges": "names what an earlier release must be made with",
    "release/findings/findings.py warn_of_attackers": _LINE,
    "release/findings/population.py PopulationBound.kind": _LINE,
    "release/findings/rare_values.py RareSecrets.option": _LINE,
    "release/findings/rare_values.py rare_value_advice": _LINE,
    "release/findings/sparseness.py smaller_tables": _USELESS,
    "release/kept_counts.py too_many_error": _LARGE,
    "release/ledger/ledger_file.py Ledger._write": "needs a folder that may be read and not written, also by root",
    "release/model_design.py _refuse_size": _LARGE,
    "release/private_design.py design_statements": _LINE,
    "release/release.py Release._exclusions": _LINE,
    "release/wide_design.py FittedWideModel.warning": _LINE,
    "report/statements.py _file_answer": _LINE,
    "report/summary_lines.py _neighbours_text": _LINE,
    "report/summary_lines.py _unnamed_values": _LINE,
    "report/summary_lines.py warnings": _LINE,
    "spark/data_frames.py apply": _CLUSTER,
    "spark/frame_draw.py refuse_persons": _CLUSTER,
    "spark/output_folder.py HiddenFolder.begin": _CLUSTER,
    "spark/spark_session.py read_table": _CLUSTER,
    "spec/checks.py check_columns_exist": "met by a policy alone: cli/test_check.py",
    "spec/kinds.py SecretColumns.check": _PYTHON,
    "spec/release_spec.py ReleaseSpec.require_into": _PYTHON,
    "studio/launcher.py run": "needs a port that is taken",
    "studio/text_filters.py word_for_form.label": _LINE,
    "tables/coding/coders.py LabelCoder._encode": _LARGE,
    "tables/coding/domain_file.py draft_domain": _LARGE,
    "tables/readers/column_hazards.py _repeated_persons": _LINE,
    "tables/readers/column_hazards.py _spellings": _LINE,
    "tables/readers/delimited.py DelimitedTable._refuse_ragged": "needs a delimiter that is taken for another",
    "tables/readers/eager_frames.py frame_by_persons": _PYTHON,
    "tables/readers/foreign_files.py _read_excel": _SHEET,
    "tables/readers/formats.py _report_failures": "needs an encoding that is taken for another",
}
