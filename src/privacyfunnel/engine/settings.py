"""Every threshold of the engine, in one frozen value.

Each comment says what the threshold does and, in brackets, what set it:

[name: instances]  the strategy of `benchmarks.ablation` that it belongs to, and the rows that defend it
[tolerance]        numerical tolerance: large against rounding, small against anything that counts
[memory]           bounds memory, or keeps a batch in the processor's cache; changes no result but by rounding
[signals]          how soon an interrupt is obeyed; changes no result
[nominal]          seconds of counted work, measured over the instances of the ablation
[sensitivity]      halved and doubled in `benchmarks.sensitivity`, with the largest change where it is more than 1 %

Nothing else in the engine holds a number that decides anything.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tolerances:
    """Pure rounding tolerances. Values and bounds are recomputed by formula; these decide what counts as equal."""

    rounding: float = 1e-13  # relative: what sums of numbers of one size may be off by [tolerance]
    near: float = 1e-12  # relative: smaller entries, reduced costs and gains are none [tolerance]
    feasible: float = 1e-10  # violations of a bound, and reduced costs, that do not count [tolerance]
    solved: float = 1e-9  # to which HiGHS solves, and what its solutions may be off by [tolerance]
    tiny: float = 1e-300  # argument of a logarithm or divisor in place of 0 [tolerance]
    log_tiny: float = -690.0  # its logarithm [tolerance]
    value_dust: float = 1e-15  # of a value's probability, where several inputs share a value [tolerance]
    constraint: float = 1e-11  # relative: a constraint violated by less counts as met [tolerance]
    tight: float = 1e-6  # relative: constraints nearer to their bound are made tight [tolerance]
    met: float = 1e-14  # relative violation at which Newton's repair stops [tolerance]
    farthest_repair: float = 1e-6  # share of the prior beyond which a violating atom is discarded [tolerance]
    atom_digits: int = 10  # decimal digits in which equal atoms agree [tolerance]
    key_digits: int = 12  # the same in a master's index [tolerance]
    improvement: float = 1e-11  # a search step that gains less is rounding [tolerance]
    interval: float = 1e-14  # the same for the table of pairs [tolerance]
    thin_range: float = 1e-7  # shorter ranges are not cut in proofs by products [tolerance]
    violated_credal_product: float = 1e-7  # the same over credal sets [tolerance]
    free_atom: float = 1e-7  # reduced cost of atoms that may complete a split at no cost [tolerance]
    refit: float = 1e-6  # refitted weights may differ by this from the solver's [tolerance]
    covered: float = 1e-14  # relative: what rounding may leave missing of an input [tolerance]
    condition: float = 1e9  # matrices of smaller mean condition are inverted by their factor [tolerance]
    rank: float = 1e-6  # of F outside the range of M at which tr(FFᵀM⁻¹) is infinite [tolerance]
    regularised: float = 1e-14  # added to the diagonal of a scaled Hessian [tolerance]
    entropy_limit: float = 1e-7  # relative excess over the entropy limit due to rounding [tolerance]
    no_weight: float = 1e-8  # of the largest weight: lighter atoms are dropped at the end [tolerance]
    flat_constraint: float = 1e-30  # a constraint that varies less over an atom is not moved [tolerance]
    width: float = 1e-15  # narrower stretches of a merged atom are rounding [tolerance]
    cut: float = 1e-6  # of a piece of the line: cuts nearer to its end go to the middle [tolerance]
    cutoff: float = 1e-11  # by which a bound exceeds its cutoff before a programme ends [tolerance]
    highs_retry: float = 1e-7  # the same after numerical trouble [tolerance]
    nudge: float = 1e-8  # by which a hyperplane is moved if it is too near [tolerance]
    wider: float = 1e-11  # by which a cone's constraints are widened, so that no ray lies on one [tolerance]
    new_ray: float = 1e-8  # reduced costs nearer to 0 add no ray [tolerance]


@dataclass(frozen=True)
class Plan:
    """Which strategy a problem gets."""

    many_inputs: int = 350  # residual master beyond [rest_master: lip-10x600 gap +16 without; at 150 lip-10x300 +3.0]
    many_constraints: int = 130  # beyond, search steps are linear programmes [subspace_search: srlip-3-occupation]
    most_proved: int = 500  # constraints; beyond, no branching [side_channel_bounds: srlip-3-occupation]
    most_branched: int = 700  # inputs; beyond, blocks [input_blocks: lip-2x4000 time +167 % without]
    most_interval: int = 1500  # inputs of the table of pairs; beyond, blocks [input_blocks: lip-2x4000]
    very_many_secrets: int = 250  # beyond, linear programmes [very_many_secrets: lip-300x30, statistics-300x30]
    few_credal_inputs: int = 32  # batched simplex over credal sets up to [credal_simplex_kernel: population-ldp]
    most_multiplied: int = 64  # inputs; proofs by products up to [product_proofs: statistics-ldp-census gap +76]
    most_boxed: int = 2000  # inputs; boxes of entries with squares up to [memory]
    few_constraints: int = 20  # of squared chords [squared_chord_proofs: statistics-ldp-5x100 gap +99 without]


@dataclass(frozen=True)
class Driver:
    """The loop: shares of a time limit, patience, and what a proof is asked for."""

    most_added: int = 2000  # atoms per round, the cheapest [memory]
    searched_to: float = 0.25  # of the gap: reduced costs below end the search [boxed_chords: lip-10x50]
    proved_to: float = 0.95  # of the gap: what a proof is asked for [boxed_chords: lip-10x50]
    late_share: float = 0.25  # of the time left, for a search between two late proofs [sensitivity: steps +7.1 %]
    patience: int = 8  # searches without a find where nothing is proved [subspace_search: srlip-3-occupation]
    sought: float = 3e-4  # of the prior's cost: what such a search looks for [subspace_search: srlip-3-occupation]
    secret_box_damping: float = 0.8  # weight of past prices with a closed-form oracle [steady_prices: sees-lip]
    refining_share: float = 0.1  # of a time limit, beyond it, to refine the final weights [sensitivity: within 1 %]
    refining_seconds: float = 0.5  # and at least; and for weights once time is up [sensitivity: within 1 %]
    credal_patience: int = 4  # searches before a proof over credal sets [boxed_chords: population-ldp]


@dataclass(frozen=True)
class Work:
    """Nominal seconds of counted work: the clock of runs without a time limit.

    Set so that nominal and processor seconds of the ablation's instances agree within a factor of 2.
    """

    programme: float = 1e-4  # a call of HiGHS [nominal]
    iteration: float = 2.5e-5  # of its simplex method, and … [nominal]
    iteration_share: float = 0.1  # … this share of the programme's entries [nominal]
    pivot: float = 1.5e-5  # of a programme in a batch, and its entries [nominal]
    entry: float = 5e-9  # a number read or written [nominal]
    neighbour_passes: int = 5  # over a table of neighbouring vertices [nominal]
    box_passes: int = 30  # over the entries of a box that is bounded and cut [nominal]
    entropic_passes: int = 20  # over those of a box of an average, per step [nominal]
    descent: int = 20_000  # entries of a descent's step, or of an interior point step, however small [nominal]
    cholesky: float = 0.05  # of the cube of the number of atoms, in an interior point step [nominal]


@dataclass(frozen=True)
class SlackMasters:
    """Restricted masters with slack, their coarse start, repair and blocks."""

    residual_price: float = 0.5  # nats per unit of residual [rest_master: lip-10x600]
    penalty_growth: float = 10.0  # factor of the slack penalty [rest_master: lip-10x600]
    residual_growth: float = 1.5  # factor of the residual price [rest_master: lip-10x600]
    first_searches: int = 5  # before there are prices [rest_master: lip-10x600]
    least_squares_seconds: float = 1e-9  # per input and pair of atoms, to refit weights [sensitivity: within 1 %]
    refinements: int = 3  # of final weights; each gains the digits of the solver's tolerance [tolerance]
    farthest_weight: float = 1e6  # on the scale of what is missing: how far a weight may fall [tolerance]
    entries_at_once: int = 1 << 20  # entries of atoms added together [memory]
    key_bytes: int = 16  # of the digest by which a master knows an atom [memory]
    largest_block: int = 64  # inputs of a block [input_blocks: lip-2x4000]
    block_gap: float = 0.002  # of the prior's cost: how well blocks are solved [input_blocks: lip-2x4000]
    block_seconds: float = 0.02  # least time of a block [input_blocks: lip-2x4000]
    known_share: float = 0.25  # of the time left, for a split that is known [input_blocks: lip-2x4000]
    balanced: float = 0.9  # of ε: what the prior of a block may use [input_blocks: lip-2x4000]


@dataclass(frozen=True)
class Moments:
    """The second-moment master (statistics): mixture, steepest direction, proofs."""

    proved_to: float = 0.8  # of the gap, less what the mixture is ahead by [product_proofs: statistics-lip-census]
    ahead_to: float = 0.5  # of the gap: smaller improvements are proved [product_proofs: statistics-lip-census]
    late: float = 0.25  # of the improvement: least target of a proof [product_proofs: statistics-ldp-census]
    searched_to: float = 0.02  # of the gap: reduced costs above are not sought [steepest_rounds: statistics-sees]
    loosest: float = 0.05  # of the value: target of a proof without a search before it [sensitivity: within 1 %]
    early: float = 0.3  # of a time limit: first proof by then [product_proofs: statistics-ldp-census]
    early_share: float = 0.2  # of the time left, for that proof [product_proofs: statistics-ldp-census]
    searching_share: float = 0.5  # of the time left, for one search [sensitivity: gap +7.3 %]
    fruitless: int = 3  # proofs that find nothing until the run ends [sensitivity: within 1 %]
    stalled_gain: float = 1e-3  # of the gap: rounds that close less are stalled [sensitivity: within 1 %]
    stalled_rounds: int = 12  # until the run ends [sensitivity: within 1 %]
    most_kept: int = 2500  # atoms of the master, plus the number of inputs [memory]
    light: float = 1e-4  # of the most an atom can weigh: lighter ones are dropped [sensitivity: gap +5.5 %]
    spare: float = 1e-3  # of the value: unless their reduced cost is below [sensitivity: steps +3.0 %]
    rough: float = 1e-3  # relative accuracy of the first mixture [steepest_rounds: statistics-sees]
    closer: float = 0.1  # of the last improvement: accuracy of the next [steepest_rounds: statistics-sees]
    fine: float = 0.02  # of the gap: best accuracy [steepest_rounds: statistics-sees]
    moved: float = 5.0  # times the improvement: weight moved to the steepest split [steepest_rounds: statistics-sees]
    farthest: float = 0.3  # most of the weight that moves [steepest_rounds: statistics-sees]
    search_share: float = 0.5  # of a time limit, for searches alone [product_proofs: statistics-ldp-census]
    long_search_share: float = 0.6  # the same with squared chords [squared_chord_proofs: statistics-ldp-5x100]
    unproved_share: float = 0.8  # the same without a prover [bound_by_the_table: statistics-population-5x80]
    relaxing_share: float = 0.2  # of a proof's time, for a relaxation [bound_by_the_table: statistics-population-5x80]
    relaxation_gap: float = 0.01  # relative gap of relaxations [bound_by_the_table: statistics-population-5x80]
    ending_share: float = 0.05  # of a time limit, for the final mixture [sensitivity: gap +14.6 %]
    final_cost: float = 1e-7  # relative: what leaving out light atoms may cost in the end [tolerance]
    final_accuracy: float = 1e-2  # of that: accuracy of the final mixture [tolerance]
    interior_steps: int = 80  # most steps of the interior point method; some twenty are usual [sensitivity: within 1 %]
    boundary: float = 0.99  # of the way to the boundary: longest interior point step [sensitivity: gap +21.0 %]
    least_weight: float = 1e-2  # of an even share: least starting weight of an atom [sensitivity: gap -3.3 %]
    remaining: float = 0.1  # of the value: what an unknown mixture is taken to gain [sensitivity: gap +11.2 %]
    slack_share: float = 0.01  # of the entropy limit: least starting slack [sensitivity: gap -31.1 %]
    least_slack: float = 1e-3  # nats: the same [sensitivity: gap -36.3 %]
    least_centring: float = 1e-3  # least predicted progress that sets the centring [sensitivity: within 1 %]
    direction_rounds: int = 40  # of programme and search for the steepest split [steepest_rounds: statistics-sees]
    direction_damping: float = 0.7  # weight of past prices there [steepest_rounds: statistics-sees]
    direction_searched_to: float = 0.05  # of its lead: atoms that add less end it [steepest_rounds: statistics-sees]
    direction_added: int = 1000  # atoms per round [memory]
    pool: int = 3000  # atoms remembered between mixtures [memory]
    pool_per_input: int = 3  # or so many for each input [memory]


@dataclass(frozen=True)
class Averages:
    """The average-leakage master (classical funnel) and actions on a line."""

    starts: int = 96  # descents of a search [funnel_walks: average-5x16 steps +417 % without]
    steps: int = 60  # of a descent [funnel_walks: average-5x16]
    late_steps: int = 400  # of a descent from a good atom [funnel_walks: average-5x16]
    worth: float = 0.1  # of the gap: reduced costs nearer to 0 add no atom [funnel_walks: average-lip-5x12]
    added: int = 24  # atoms per round [funnel_walks: average-lip-5x12]
    damping: float = 0.5  # weight of past prices [funnel_walks: average-lip-5x12]
    proved_to: float = 0.5  # of the gap [gibbs_steps: average-5x16 gap +21 without]
    early: float = 0.3  # of the time: first proof by then [sensitivity: steps -27.8 %]
    spread: float = 0.3  # Dirichlet parameter of random atoms [funnel_walks: average-lip-5x12]
    atom_digits: int = 7  # decimal digits in which equal atoms agree [tolerance]
    multiplier_steps: int = 4  # multipliers updated per step of a descent [funnel_walks: average-lip-5x12]
    tangent_steps: int = 8  # between vertices where the cost is concave [funnel_walks: average-lip-5x12]
    line_rounds: int = 60  # of master and line; a dozen were never exceeded [number_line: distance-census gap +6.8]
    line_pieces: int = 400  # of the line per round [number_line: distance-census]
    line_proved_to: float = 0.25  # of the tolerance, for one minimum along the line [number_line: distance-census]


@dataclass(frozen=True)
class Searches:
    """Vertex, tangent and subspace search, and the table of pairs."""

    preference: tuple[float, float] = (0.3, 2.0)  # nats by which a wanted input is cheaper [vertex_search: lip-census]
    spread: float = 0.3  # Dirichlet parameter of random distributions [vertex_search: statistics-lip-census]
    farthest: float = 3.0  # times a random direction of B [vertex_search: statistics-lip-census]
    noise: float = 2.0  # largest scale of random slopes [vertex_search: lip-census]
    vertex_starts: int = 64  # walks at once [vertex_search: lip-census]
    vertex_pool: int = 4096  # vertices remembered [vertex_pool: ldp-census steps +119 % without]
    vertex_steps: int = 30  # of a long walk [vertex_search: lip-census]
    short_steps: int = 8  # of a walk of which every vertex is kept [vertex_search: lip-10x50]
    starting_share: float = 0.1  # of the time left, for first atoms [sensitivity: steps +4.6 %]
    tangent_steps: int = 12  # of a descent [secret_box: sees-lip]
    sharpest: float = 1e-3  # least entry of an image at the start of a descent [secret_box: sees-lip]
    least_entry: float = 1e-6  # and on its way [secret_box: sees-lip]
    tangent_atoms: int = 128  # of a search [memory]
    tangent_pool: int = 1024  # atoms remembered where the cost has a square [memory]
    own_value: float = 0.1  # weight of an input's value at the start [secret_box: sees-lip]
    closed_form_starts: int = 96  # of descents by a closed-form oracle [secret_box: sees-lip]
    programme_starts: int = 3  # by linear programmes [secret_box: sees-ldp]
    credal_starts: int = 24  # over credal sets, batched [credal_simplex_kernel: population-ldp]
    wide_credal_starts: int = 8  # the same by linear programmes [bound_by_the_table: statistics-population-5x80]
    subspace_walks: int = 24  # of a search [subspace_search: srlip-3-occupation]
    subspace_pool: int = 2048  # atoms remembered [memory]
    subspace_steps: int = 10  # of a descent [subspace_search: srlip-3-occupation]
    subspace_patience: int = 8  # searches without a find [subspace_search: srlip-3-occupation]
    neighbours: int = 128  # inputs of a subspace [subspace_search: srlip-3-occupation]
    first_neighbours: int = 256  # inputs of the first subspaces [subspace_search: srlip-3-occupation]
    sharpness: tuple[float, float] = (-4.0, -1.0)  # log10 of least entries [subspace_search: srlip-3-occupation]
    fresh_walks: int = 8  # one in so many starts from no known atom [subspace_search: srlip-3-occupation]
    staircases: int = 12  # random pairings to start with [one_secret_bounds: lip-10x1000]
    interval_entries: int = 1 << 22  # of the table of pairs priced together [memory]


@dataclass(frozen=True)
class Proofs:
    """Branch and bound and its relaxations."""

    longest: float = 120.0  # nominal seconds of one proof without a time limit [sensitivity: within 1 %]
    many_open: int = 1 << 18  # open boxes; beyond, depth first [memory]
    polish_starts: int = 16  # solutions from which descents start [polished_solutions: ldp-10x50 time +500 % without]
    batch_atoms: int = 64  # atoms kept of a batch [polished_solutions: ldp-10x50]
    most_atoms: int = 256  # atoms kept of a proof [polished_solutions: ldp-10x50]
    chord_polish: int = 4  # batches between polishing, chords [polished_solutions: ldp-10x50]
    credal_polish: int = 32  # over credal sets [boxed_chords: population-ldp]
    class_polish: int = 32  # class cones [class_cone_boxes: srlip-3-skewed gap +3.5 without]
    product_polish: int = 8  # products of constraints [product_proofs: statistics-lip-census]
    entropic_polish: int = 4  # entropic boxes [gibbs_steps: average-5x16]
    squared_gather: float = 1.0  # more boxes after a find [squared_chord_proofs: statistics-ldp-5x100]
    class_gather: float = 0.5  # the same, class cones [class_cone_boxes: srlip-3-skewed]
    entropic_gather: float = 0.5  # the same, entropic boxes [gibbs_steps: average-5x16]
    entropic_batch: int = 64  # boxes at once [memory]
    entropic_steps: int = 12  # of z per box [gibbs_steps: average-5x16 gap +21 without]
    line_search: int = 20  # halvings of a Frank-Wolfe step [gibbs_steps: average-5x16]
    halvings: int = 30  # rounds that tighten the off-diagonal bound [squared_chord_proofs: statistics-ldp-5x100]
    cut_margin: float = 0.1  # of a range: least distance of a cut from its ends [product_proofs: statistics-lip-census]
    products_per_round: int = 50  # that enter a programme [product_proofs: statistics-lip-census]
    product_rounds: int = 60  # of a box [product_proofs: statistics-lip-census]
    product_gain: float = 0.2  # of what is missing: least gain of a round [product_proofs: statistics-lip-census]
    product_floor: float = 1e-3  # relative to the goal: how far below it δ may go [tolerance]
    credal_cuts_per_round: int = 40  # constraints of credal sets [credal_product_rows: statistics-population gap +57]
    most_credal_cuts: int = 300  # constraints of a box [credal_product_rows: statistics-population]
    most_rays: int = 1500  # of all class cones [class_cone_boxes: srlip-3-skewed]
    most_classes: int = 16  # whose masses are branched on [class_cone_boxes: srlip-3-skewed]
    worth_classes: float = 1.5  # times the classes, for fewer rays [class_cone_boxes: srlip-3-columns]
    near_rays: int = 10  # per class that halves start with [class_cone_boxes: srlip-3-skewed]
    nudges: int = 8  # tries to move a hyperplane, each way [class_cone_boxes: srlip-3-skewed]
    most_tight: int = 64  # inequalities of a cone: one bit each [memory]
    edges_at_once: int = 4096  # pairs of rays tested together [memory]
    ray_penalty: float = 1e3  # for a violated constraint of the programme over rays [class_cone_boxes: srlip-3-skewed]
    rays_per_round: int = 48  # that enter the programme [class_cone_boxes: srlip-3-skewed]
    ray_rounds: int = 40  # of that programme [class_cone_boxes: srlip-3-skewed]


@dataclass(frozen=True)
class Bounds:
    """Dual bounds by proofs and relaxations."""

    proof_share: float = 0.4  # of a time limit, for proofs [simpler_problems: srlip-3-occupation]
    relaxing_share: float = 0.3  # where relaxations alone are proved [one_secret_bounds: lip-10x1000 gap +3.5 without]
    class_share: float = 0.55  # where these are side channels [side_channel_bounds: srlip-3-occupation gap +26]
    branching_part: float = 6  # of the time left, 1/6 goes to branching first [simpler_problems: srlip-3-occupation]
    branching_seconds: float = 5.0  # the same without a time limit [sensitivity: within 1 %]
    loosest: float = 0.64  # nats: first target of repeated proofs [simpler_problems: srlip-3-occupation]
    loosest_share: float = 0.75  # of the present gap: the same [simpler_problems: srlip-3-occupation]
    stalled_share: float = 0.1  # of the time without a rise, until others have a turn [sensitivity: within 1 %]
    one_secret_gap: float = 0.001  # of the prior's cost [one_secret_bounds: lip-10x1000]
    one_secret_share: float = 0.5  # of the time left [one_secret_bounds: lip-10x1000]
    class_inputs: int = 100  # of a class, for all its constraints [side_channel_bounds: srlip-3-occupation]
    finer_factor: int = 4  # how much later finer divisions are asked about [side_channel_bounds: srlip-3-occupation]
    part_gap: float = 0.004  # of its prior's cost: first gap of a part [side_channel_bounds: srlip-3-occupation]
    part_closer: float = 4  # factor by which the gap shrinks [side_channel_bounds: srlip-3-occupation]
    part_closest: float = 5e-4  # least gap [side_channel_bounds: srlip-3-occupation]
    part_seconds: float = 3.0  # of the first turn of a part of … [side_channel_bounds: srlip-3-occupation]
    part_inputs: int = 50  # … so many inputs; the time grows with the square [side_channel_bounds: srlip-3-occupation]
    part_longer: float = 3  # factor of the next turn after a failure [side_channel_bounds: srlip-3-occupation]
    part_share: float = 0.5  # of the time left, for first turns [side_channel_bounds: srlip-3-occupation]
    part_solved: float = 2  # times the gap asked for: solved well enough [side_channel_bounds: srlip-3-occupation]
    part_worth: float = 0.005  # of the prior's cost: least gain to go on [side_channel_bounds: srlip-3-occupation]
    part_alongside: float = 0.5  # of the best rate: parts that go on too [side_channel_bounds: srlip-3-occupation]


@dataclass(frozen=True)
class Reductions:
    """Smaller problems."""

    dense_entries: int = 4 * 10**7  # of a split up to which its atoms are a dense array [memory]
    refined_entries: int = 2 * 10**7  # of a split whose merged inputs are told apart [memory]


@dataclass(frozen=True)
class LinearProgrammes:
    """HiGHS and the batched simplex kernels."""

    large: int = 50_000  # entries; larger programmes run in a thread, so that a signal is heard [signals]
    poll_seconds: float = 0.1  # between looks for a signal [signals]
    most_pivots: int = 200  # at least, before a programme of a batch is given up [batched_simplex_kernel: ldp-census]
    pivots_per_row: int = 10  # the same, by its size [batched_simplex_kernel: ldp-census]
    random_after: int = 40  # pivots, then rows leave at random [batched_simplex_kernel: ldp-census]
    refresh: int = 25  # pivots between fresh inverses [tolerance]
    credal_pivots_per_input: int = 30  # before a programme is given up [credal_simplex_kernel: population-ldp]
    pivots_per_box: int = 8  # over credal sets, before a box is cut [credal_simplex_kernel: population-ldp]
    batch_numbers: int = 40_000  # in the costs of a batch [memory]
    least_batch: int = 64  # programmes [memory]
    credal_numbers: int = 65_536  # in the bases of a batch [memory]
    cells: int = 1 << 20  # of secrets, values and costs of a closed-form batch [memory]
    least_cells: int = 16  # costs of a batch [memory]
    sums: int = 1 << 20  # entries summed together [memory]
    constraint_batch: int = 128  # costs minimised in one call [memory]
    credal_batch: int = 8  # costs minimised in one call [memory]
    repairs: int = 3  # Newton steps of an atom's repair; each squares the error [tolerance]
    largest_repair: float = 0.5  # relative change of an entry beyond which it is given up [tolerance]


@dataclass(frozen=True)
class Settings:
    """All of them."""

    tolerance: Tolerances = field(default_factory=Tolerances)
    plan: Plan = field(default_factory=Plan)
    driver: Driver = field(default_factory=Driver)
    work: Work = field(default_factory=Work)
    slack: SlackMasters = field(default_factory=SlackMasters)
    moments: Moments = field(default_factory=Moments)
    averages: Averages = field(default_factory=Averages)
    search: Searches = field(default_factory=Searches)
    proofs: Proofs = field(default_factory=Proofs)
    bounds: Bounds = field(default_factory=Bounds)
    reductions: Reductions = field(default_factory=Reductions)
    lp: LinearProgrammes = field(default_factory=LinearProgrammes)


SETTINGS = Settings()
