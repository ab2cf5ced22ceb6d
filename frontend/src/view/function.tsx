/** The Function view: how far the outputs moved, past network against current one, on the same probe. */

export function FunctionView() {
  return (
    <section class="panel" aria-label="Function">
      <h1>Change of the function</h1>
    </section>
  );
}
