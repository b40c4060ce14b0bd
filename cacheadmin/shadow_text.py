"""What a shadow policy would have done, for a terminal."""

from inference.cache.shadow import Counted, Report

_KINDS = {
    "live": "served now",
    "shadow": "served then",
    "added": "only then",
    "lost": "only now",
    "changed": "another answer",
}


def report_lines(report: Report) -> list[str]:
    """A table of the report, with intervals."""
    row = report.policy
    whose = f"scope {row.scope.hash[:8]}" if row.scope else "all scopes"
    head = f"policy {row.pk}, version {row.version}, {whose}, {row.content_class or 'all classes'}"
    lines = [f"{head}: high {row.high:.3f}, low {row.low:.3f}, tried on {report.lookups} lookups"]
    for name, share in report.hit_shares.items():
        if share:
            lines.append(
                f"  {_KINDS[name]:<15}{share[0]:>7.1%} of lookups ({share[1]:.1%} to {share[2]:.1%})"
            )
    lines.append(f"  {'':<15}{'lookups':>9}{'right':>8}{'wrong':>8}{'unknown':>9}   wrong, of the known")
    lines += [_row(label, getattr(report, name)) for name, label in _KINDS.items()]
    return lines


def _row(label: str, counted: Counted) -> str:
    share = counted.wrong_share
    wrong = f"{share[0]:.1%} ({share[1]:.1%} to {share[2]:.1%})" if share else "–"
    figures = f"{counted.n:>9}{counted.right:>8}{counted.wrong:>8}{counted.unknown:>9}"
    return f"  {label:<15}{figures}   {wrong}"
