// State of the page as the fragment of a link: #try/ or #playground/ followed by JSON in base64url.

const BYTES_AT_ONCE = 8192;

// Encode a state for a link.
export function asFragment(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let binary = "";
  for (let k = 0; k < bytes.length; k += BYTES_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(k, k + BYTES_AT_ONCE));
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const isTexts = (value) => Array.isArray(value)
  && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === "string"));

const isCost = (value) => typeof value === "number" && Number.isFinite(value);

function isLoss(value) {
  return value !== null && typeof value === "object" && Array.isArray(value.decisions) && Array.isArray(value.costs)
    && value.decisions.every((name) => typeof name === "string") && value.costs.length === value.decisions.length
    && value.costs.every((line) => Array.isArray(line) && line.every(isCost))
    && (value.reject === null || isCost(value.reject));
}

// Decode the state in a link; null if it is invalid.
export function valueInFragment(text) {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

// Decode the row in a link: {row, pinned, loss}; throw an Error if it is invalid.
export function rowInFragment(text) {
  const state = valueInFragment(text);
  const isOne = state !== null && typeof state === "object" && isTexts(state.row)
    && (state.pinned === null || isTexts(state.pinned)) && (state.loss === null || isLoss(state.loss));
  if (!isOne) throw new Error("the link does not contain a valid row; it may be truncated");
  return state;
}
