import { defineConfig } from "vitest/config";

// On a busy machine a test may take long: time never decides it.
export default defineConfig({ test: { testTimeout: 120_000, hookTimeout: 120_000 } });
