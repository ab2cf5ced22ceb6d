/** A dialog that opens and closes with a value. */

import { useLayoutEffect, useRef } from "preact/hooks";

/** A dialog that is open if `open`; its title gets the focus if it can. */
export function useDialog(open: boolean) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (open && !ref.current?.open) {
      ref.current?.showModal();
      ref.current?.querySelector<HTMLElement>("h2[tabindex]")?.focus();
    }
    if (!open) ref.current?.close();
  }, [open]);
  return ref;
}
