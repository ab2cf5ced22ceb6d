/** The Compare view: where do two runs differ? Mask overlap of all pairs, by layer and step, and two layers side by side. */

export function CompareView() {
  return (
    <section class="panel" aria-label="Compare">
      <h1>Mask overlap</h1>
    </section>
  );
}
