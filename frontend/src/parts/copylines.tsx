/** Lines of code, and a button that copies them. */

import { useState } from "preact/hooks";
import { copyText } from "../host";
import { Button, Icon } from "./widgets";

export function CopyLines({ lines, what }: { lines: readonly string[]; what: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <>
      <pre>{lines.join("\n")}</pre>
      <Button onClick={() => void copyText(lines.join("\n")).then(setCopied)}>
        <Icon name={copied ? "check" : "link"} /> {copied ? "Copied" : `Copy the ${what}`}
      </Button>
    </>
  );
}
