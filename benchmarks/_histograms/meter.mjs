/** What the network carries from now on: bytes of answers with their headers, and how many; `plugin`: those of plugins alone. */
export async function meter(page) {
  const session = await page.context().newCDPSession(page);
  const seen = { bytes: 0, plugin: 0, requests: 0 };
  const addresses = new Map();
  await session.send("Network.enable");
  session.on("Network.responseReceived", ({ requestId, response }) => addresses.set(requestId, response.url));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    seen.bytes += encodedDataLength;
    seen.requests++;
    if (/\/data\/plugin(\/(histograms|pastnet)|_entry)/.test(addresses.get(requestId))) seen.plugin += encodedDataLength;
  });
  return seen;
}

/** Waits until nothing more has come for a second. */
export async function quiet(page, seen) {
  for (let before = -1; before !== seen.requests; ) {
    before = seen.requests;
    await page.waitForTimeout(1000);
  }
}
