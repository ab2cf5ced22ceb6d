// Screenshots of the page inside a running TensorBoard: node gallery/board.mjs http://127.0.0.1:6006 OUT.png [--dark] [--size 1440x900]
// [--hash '&p.pastnet.v=layer'] [--press keys,comma,separated] [--click selector] [--hover x,y]
import { openTab } from "../scripts/browser.mjs";
import { takePicture } from "./camera.mjs";

await takePicture((page, base, { hash, dark }) => openTab(page, base, { hash, dark }));
