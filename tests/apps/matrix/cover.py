"""Covering arrays: rows of settings in which every pair of values that may stand together does
so at least once.

A factor has a name and values. A rule names values that must not meet: "mode=full &
sampler!=default" forbids every sampler but the default one on the whole graph. The rows found
depend on the factors and rules alone.
"""
import itertools


class Rule:
    """Settings that must not meet, and words of the message that says so."""

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
        """The values of each of its factors that must not meet."""
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
        self.names = list(self.factors)
        self.rules = list(rules)
        choices = [rule.choices(self.factors) for rule in self.rules]
        # For every setting: what may not stand beside it, as (number of the rule, [(other factor,
        # its values)]).
        self.forbidden = {(name, value): [] for name in self.names for value in self.factors[name]}
        self.linked = {name: set() for name in self.names}
        for number, bad in enumerate(choices):
            for name, values in bad.items():
                others = [(other, frozenset(bad[other])) for other in bad if other != name]
                self.linked[name] |= {other for other, _ in others}
                for value in values:
                    self.forbidden[name, value].append((number, others))

    def fits(self, row, name, value, ignore=None):
        """Whether the setting may be added to `row`, in which some factors may be open."""
        value_of = row.get
        for number, others in self.forbidden[name, value]:
            if number == ignore:
                continue
            for other, values in others:
                if value_of(other) not in values:
                    break
            else:
                return False
        return True

    def can_go_on(self, row, name, ignore=None):
        """Whether every open factor that `name` has rules with still has a value."""
        return all(any(self.fits(row, other, value, ignore) for value in self.factors[other])
                   for other in self.linked[name] if other not in row)

    def forced_first(self, row, name, order, ignore=None):
        """`order` with those factors first that have only one value left because of `name`; None if
        a factor has none."""
        forced = []
        linked = self.linked[name]
        for other in order:
            if other not in linked:
                continue
            left = 0
            for value in self.factors[other]:
                if self.fits(row, other, value, ignore):
                    left += 1
                    if left == 2:
                        break
            if left == 0:
                return None
            if left == 1:
                forced.append(other)
        return forced + [other for other in order if other not in forced] if forced else order

    def complete(self, row, prefer, ignore=None, order=None):
        """`row` with all factors set, or None; `prefer` puts the values of a factor in the order
        to try."""
        order = order if order is not None else [name for name in self.names if name not in row]
        for name in row:
            order = self.forced_first(row, name, order, ignore)
            if order is None:
                return None
        return self.go_on(row, prefer, ignore, order)

    def go_on(self, row, prefer, ignore, order):
        if not order:
            return dict(row)
        name = order[0]
        for value in prefer(row, name, self.factors[name]):
            if not self.fits(row, name, value, ignore):
                continue
            row[name] = value
            rest = self.forced_first(row, name, order[1:], ignore)
            found = self.go_on(row, prefer, ignore, rest) if rest is not None else None
            del row[name]
            if found:
                return found
        return None

    def begun(self, settings, ignore=None):
        """Settings as the beginning of a row, or None where they must not meet or lead nowhere."""
        row = {}
        for name, value in settings.items():
            if not self.fits(row, name, value, ignore):
                return None
            row[name] = value
        return row if all(self.can_go_on(row, name, ignore) for name in row) else None

    def pairs_of(self, row):
        return set(map(frozenset, itertools.combinations(row.items(), 2)))

    def all_pairs(self):
        for first, second in itertools.combinations(self.names, 2):
            for a, b in itertools.product(self.factors[first], self.factors[second]):
                yield {first: a, second: b}

    def pairs_to_cover(self):
        """Every pair that a whole row can have, in a fixed order, and those that none can."""
        possible, impossible, met = [], [], set()
        for pair in self.all_pairs():
            if frozenset(pair.items()) not in met:
                row = self.begun(pair)
                row = row and self.complete(row, in_turn)
                if row is None:
                    impossible.append(pair)
                    continue
                met |= self.pairs_of(row)
            possible.append(pair)
        return possible, impossible

    def rows(self):
        """The array: greedy, each row begun with a pair that is still missing."""
        possible, _ = self.pairs_to_cover()
        missing = {frozenset(pair.items()): pair for pair in possible}
        open_pairs = {(name, value): 0 for name in self.names for value in self.factors[name]}
        for pair in possible:
            for item in pair.items():
                open_pairs[item] += 1
        rows = []

        def gain(row, name, value):
            return sum(frozenset(((name, value), other)) in missing for other in row.items())

        def prefer(row, name, values):
            # What covers most now, then what has most left to cover; then values take turns.
            turn = len(rows)
            rank = {v: (-gain(row, name, v), -open_pairs[name, v], (i - turn) % len(values))
                    for i, v in enumerate(values)}
            return sorted(values, key=rank.get)

        while missing:
            first = max(missing.values(), key=lambda pair: sum(open_pairs[item] for item in pair.items()))
            order = sorted((n for n in self.names if n not in first), key=lambda n: -len(self.factors[n]))
            row = self.complete(dict(first), prefer, order=order)
            for key in self.pairs_of(row):
                if missing.pop(key, None):
                    for item in key:
                        open_pairs[item] -= 1
            rows.append({name: row[name] for name in self.names})
        return rows

    def broken_rows(self, most):
        """For every rule at most `most` rows that break it and no other rule: (rule, row)."""
        for number, rule in enumerate(self.rules):
            bad = rule.choices(self.factors)
            cases = [dict(zip(bad, values)) for values in itertools.product(*bad.values())]
            for case in cases[::max(1, -(-len(cases) // most))]:
                row = self.begun(case, number)
                row = row and self.complete(row, in_turn, number)
                if row is not None:
                    yield rule, {name: row[name] for name in self.names}


def in_turn(_row, _name, values):
    return values
