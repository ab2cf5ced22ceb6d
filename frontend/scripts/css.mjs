// For esbuild: style sheets are imported as minified text and adopted by the document, so that no second request is needed.
import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

export const css = {
  name: "css-text",
  setup(builder) {
    builder.onLoad({ filter: /\.css$/ }, async (args) => {
      const source = await readFile(args.path, "utf8");
      const { code } = await transform(source, { loader: "css", minify: true });
      return { contents: code, loader: "text" };
    });
  },
};
