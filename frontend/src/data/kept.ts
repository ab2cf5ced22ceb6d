/** Results that are made once. */

interface Results<K, V> {
  get(key: K): V | undefined;
  set(key: K, result: V): unknown;
}

function keptIn<K, V>(results: Results<K, V>, make: (key: K) => V): (key: K) => V {
  return (key) => {
    let result = results.get(key);
    if (result === undefined) {
      result = make(key);
      results.set(key, result);
    }
    return result;
  };
}

/** What is made of an object, kept as long as the object is. */
export const kept = <K extends object, V extends object>(make: (source: K) => V) => keptIn<K, V>(new WeakMap(), make);

/** What is made of a name or a number, kept as long as what keeps it. */
export const keptByValue = <K, V extends object>(make: (value: K) => V) => keptIn<K, V>(new Map(), make);
