"""Covering arrays: rows of settings in which every pair of values that may stand together does
so at least once.

A factor has a name and values. A rule names values that must not meet: "mode=full &
sampler!=default" forbids every sampler but the default one on the whole graph. The rows found
depend on the factors and rules alone.

Inside, a setting (a factor with one of its values) is a number, and a row is an integer whose bit
s is set if it has setting s. So a few operations on integers tell whether a setting fits into a row
and how many missing pairs it would cover.
"""
import functools
import itertools
import operator


class Rule:
    """A Rule names settings that must not meet, and words of the message that refuses them."""

    def __init__(self, text, says=""):
        self.text, self.says = text, says
        self.terms = [self.term(part.strip()) for part in text.split("&")]
        self.names = [name for name, _, _ in self.terms]

    @staticmethod
    def term(part):
        excluded = "!=" in part
        name, values = part.split("!=" if excluded else "=")
        return name.strip(), excluded, [value.strip() for value in values.split("|")]

    def choices(self, factors):
        """Returns for each factor that the rule names those values that the rule means."""
        found = {}
        for name, excluded, values in self.terms:
            unknown = [value for value in values if value not in factors.get(name, ())]
            if unknown:  # a rule with a misspelt name would never apply
                raise ValueError(f"rule '{self.text}': factor {name} has no value {unknown}")
            found[name] = [value for value in factors[name] if (value in values) != excluded]
        return found


class Array:
    def __init__(self, factors, rules):
        self.factors = {name: list(values) for name, values in factors.items()}
        self.rules = list(rules)
        self.settings = [(name, value) for name, values in self.factors.items() for value in values]
        self.number = {setting: number for number, setting in enumerate(self.settings)}
        # These lists hold, for every factor by its number, its settings and the factors that it has
        # rules with.
        names = list(self.factors)
        self.choices = [[self.number[name, value] for value in self.factors[name]] for name in names]
        self.factor_of = [names.index(name) for name, _ in self.settings]
        self.masks = [mask_of(settings) for settings in self.choices]
        self.linked = [set() for _ in names]
        # These lists hold for every setting: all its rules, as (number of the rule, [settings of
        # another factor, one of which must stand beside it]); the settings that must never stand
        # beside it; and the rules that name further factors.
        self.forbidden = [[] for _ in self.settings]
        self.never_beside = [0] * len(self.settings)
        self.longer = [[] for _ in self.settings]
        for number, rule in enumerate(self.rules):
            self.add_rule(number, rule.choices(self.factors), names)

    def add_rule(self, number, bad, names):
        for name, values in bad.items():
            others = [other for other in bad if other != name]
            self.linked[names.index(name)] |= {names.index(other) for other in others}
            beside = [mask_of(self.number[other, value] for value in bad[other]) for other in others]
            for setting in (self.number[name, value] for value in values):
                self.forbidden[setting].append((number, beside))
                if len(beside) == 1:
                    self.never_beside[setting] |= beside[0]
                else:
                    self.longer[setting].append(beside)

    def fits(self, row, setting, ignore=None):
        """Returns whether the setting may be added to `row`, in which some factors may be open."""
        if ignore is not None:
            return not any(number != ignore and all(row & mask for mask in beside)
                           for number, beside in self.forbidden[setting])
        if row & self.never_beside[setting]:
            return False
        for beside in self.longer[setting]:
            for mask in beside:
                if not row & mask:
                    break
            else:
                return False
        return True

    def why_not(self, row, setting, ignore=None):
        """Returns the settings of `row` because of which a setting does not fit."""
        for number, beside in self.forbidden[setting]:
            if number != ignore and all(row & mask for mask in beside):
                return row & functools.reduce(operator.or_, beside, 0)
        raise ValueError("the setting fits")

    def can_go_on(self, row, factor, ignore=None):
        """Returns whether every open factor that `factor` has rules with still has a value."""
        return all(any(self.fits(row, setting, ignore) for setting in self.choices[other])
                   for other in self.linked[factor] if not row & self.masks[other])

    def forced_first(self, row, factor, order, ignore=None):
        """Returns `order` with those factors first that have only one value left because of
        `factor`, or None if a factor has no value left."""
        forced = []
        linked = self.linked[factor]
        for other in order:
            if other not in linked:
                continue
            left = 0
            for setting in self.choices[other]:
                if self.fits(row, setting, ignore):
                    left += 1
                    if left == 2:
                        break
            if left == 0:
                return None
            if left == 1:
                forced.append(other)
        return forced + [other for other in order if other not in forced] if forced else order

    def complete(self, begun, prefer, ignore=None, order=None):
        """Returns a row that has the settings `begun` and a value for every factor, or None if
        there is no such row. `prefer` puts the settings of a factor in the order to try."""
        row = mask_of(begun)
        if order is None:
            order = [factor for factor, mask in enumerate(self.masks) if not row & mask]
        for setting in begun:
            order = self.forced_first(row, self.factor_of[setting], order, ignore)
            if order is None:
                return None
        return self.go_on(row, prefer, ignore, order)[0]

    def go_on(self, row, prefer, ignore, order):
        """Returns the completed row and 0, or None and settings of `row` that no complete row has
        together. If these settings do not include the one that was added last, other values of
        its factor need not be tried."""
        if not order:
            return row, 0
        factor, blamed = order[0], 0
        for setting in prefer(row, self.choices[factor]):
            if not self.fits(row, setting, ignore):
                blamed |= self.why_not(row, setting, ignore)
                continue
            bit = 1 << setting
            rest = self.forced_first(row | bit, factor, order[1:], ignore)
            if rest is None:
                found, why = None, self.why_none(row | bit, factor, order, ignore)
            else:
                found, why = self.go_on(row | bit, prefer, ignore, rest)
            if found is not None or not why & bit:
                return found, why
            blamed |= why & ~bit
        return None, blamed

    def why_none(self, row, factor, order, ignore):
        """Returns settings of `row` that leave no value to a factor with rules on `factor`."""
        empty = next(other for other in order if other in self.linked[factor] and
                     not any(self.fits(row, setting, ignore) for setting in self.choices[other]))
        return functools.reduce(operator.or_, (self.why_not(row, setting, ignore) for setting in self.choices[empty]))

    def may_begin(self, settings, ignore=None):
        """Returns whether settings may stand together and leave a value to every other factor."""
        row = 0
        for setting in settings:
            if not self.fits(row, setting, ignore):
                return False
            row |= 1 << setting
        return all(self.can_go_on(row, self.factor_of[setting], ignore) for setting in settings)

    def dict_of(self, row):
        return {self.settings[setting][0]: self.settings[setting][1] for setting in bits_of(row)}

    def pairs_of(self, row):
        """Returns the pairs of settings in a row that is given as a dictionary."""
        return set(map(frozenset, itertools.combinations(row.items(), 2)))

    def all_pairs(self):
        for first, second in itertools.combinations(self.choices, 2):
            yield from itertools.product(first, second)

    def pairs_to_cover(self):
        """Returns the pairs that some whole row has, in a fixed order, and those that none has."""
        possible, impossible = [], []
        met = [0] * len(self.settings)
        for pair in self.all_pairs():
            first, second = pair
            if not met[first] >> second & 1:
                row = self.complete(pair, in_turn) if self.may_begin(pair) else None
                if row is None:
                    impossible.append(pair)
                    continue
                for setting in bits_of(row):
                    met[setting] |= row
            possible.append(pair)
        return possible, impossible

    def rows(self):
        """Returns the rows of the array. Each begins with a pair that no row has yet, and then
        takes the settings that add most missing pairs."""
        possible, _ = self.pairs_to_cover()
        missing = dict.fromkeys(possible)
        # For every setting, these lists hold the settings of its missing pairs, and their number.
        partners = [0] * len(self.settings)
        for first, second in possible:
            partners[first] |= 1 << second
            partners[second] |= 1 << first
        open_pairs = [mask.bit_count() for mask in partners]
        rows = []

        def prefer(row, settings):
            # Settings that cover most missing pairs with this row come first, then those with most
            # pairs left to cover. Among equals, settings take turns.
            turn = len(rows)
            rank = {s: (-(partners[s] & row).bit_count(), -open_pairs[s], (i - turn) % len(settings))
                    for i, s in enumerate(settings)}
            return sorted(settings, key=rank.get)

        while missing:
            first = max(missing, key=lambda pair: open_pairs[pair[0]] + open_pairs[pair[1]])
            taken = [self.factor_of[setting] for setting in first]
            order = sorted((f for f in range(len(self.choices)) if f not in taken), key=lambda f: -len(self.choices[f]))
            row = self.complete(first, prefer, order=order)
            for setting in bits_of(row):
                for other in bits_of(partners[setting] & row):
                    missing.pop((setting, other), None)
                partners[setting] &= ~row
                open_pairs[setting] = partners[setting].bit_count()
            rows.append(self.dict_of(row))
        return rows

    def broken_rows(self, most):
        """Yields at most `most` rows for each rule that break it and no other, as (rule, row)."""
        for number, rule in enumerate(self.rules):
            bad = rule.choices(self.factors)
            cases = list(itertools.product(*([self.number[name, value] for value in values] for name, values in bad.items())))
            for case in cases[::max(1, -(-len(cases) // most))]:
                row = self.complete(case, in_turn, number) if self.may_begin(case, number) else None
                if row is not None:
                    yield rule, self.dict_of(row)


def mask_of(settings):
    mask = 0
    for setting in settings:
        mask |= 1 << setting
    return mask


def bits_of(mask):
    """Returns the numbers of the bits that are set in an integer, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def in_turn(_row, settings):
    return settings
