"""Uses: what a published table is best for, each with its value for a protocol in its own unit.

use.py         what every use answers, and information, the paper's own
linear_use.py  the right value most often, or the least expected distance: outputs are actions
use_parser.py  uses by the names they are asked for under
"""
