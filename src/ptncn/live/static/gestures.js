// Turns mouse, wheel and touch events on a chart into calls of `span`, `zoomTo`, `zoom`, `pan` and `chooseAt`.
export function listen(plot, { span, zoomTo, zoom, pan, chooseAt }) {
  const over = plot.over;
  over.addEventListener("click", (event) => chooseAt(plot, event.offsetX));
  over.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !sideways) return; // the wheel alone scrolls the page
    event.preventDefault();
    const share = event.offsetX / over.clientWidth;
    if (sideways) pan(Math.sign(event.deltaX || event.deltaY) * 0.15);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, share);
  }, { passive: false });
  over.addEventListener("mousedown", (event) => { if (event.shiftKey) event.stopImmediatePropagation(); }, { capture: true });
  const fingers = new Map(); // the position of each finger, or of the mouse while Shift is held
  let from = null; // the times below the fingers when one was last put down or lifted: [time, time]
  const places = () => {
    const box = over.getBoundingClientRect();
    const shares = [...fingers.values()].map((x) => (x - box.left) / box.width).sort((a, b) => a - b);
    return [shares[0], shares.length > 1 ? Math.max(shares.at(-1), shares[0] + 0.05) : shares[0]];
  };
  const hold = () => {
    const [start, end] = span();
    from = fingers.size ? places().map((share) => start + share * (end - start)) : null;
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && !event.shiftKey) return;
    fingers.set(event.pointerId, event.clientX);
    over.setPointerCapture(event.pointerId);
    hold();
  });
  over.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId) || Math.abs(event.clientX - fingers.get(event.pointerId)) < 2) return;
    fingers.set(event.pointerId, event.clientX);
    const [start, end] = span();
    const [left, right] = places();
    const width = right > left ? (from[1] - from[0]) / (right - left) : end - start; // two fingers zoom, one pans
    zoomTo(from[0] - left * width, from[0] + (1 - left) * width);
  });
  for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, (event) => { if (fingers.delete(event.pointerId)) hold(); });
}
