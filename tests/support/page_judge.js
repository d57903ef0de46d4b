// What is hard to read on this page, told in a browser: texts with too little contrast, cut off, or too wide.
((exempt) => {
  for (const one of document.querySelectorAll('details')) one.open = true
  const rgb = (text) => (text.match(/[\d.]+/g) ?? []).map(Number)
  const linear = (part) => (part <= 10.31475 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4)
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b)
    return (bright + 0.05) / (dark + 0.05)
  }
  const painted = (element) => {
    const style = getComputedStyle(element)
    const drawn = element instanceof SVGElement && !(element instanceof SVGSVGElement)
    if (drawn && ['text', 'tspan', 'use', 'polyline', 'image', 'foreignObject'].includes(element.tagName)) return null
    const colour = drawn ? style.fill : style.backgroundColor
    const parts = colour === 'none' ? [] : rgb(colour)
    return parts.length === 3 || parts[3] > 0.99 ? parts.slice(0, 3) : null
  }
  const hidden = (element) => getComputedStyle(element).clipPath !== 'none' // for screen readers only
  const faults = []
  let judged = 0
  const judge = (element, box, text, colour) => {
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    const below = document.elementsFromPoint(x, y)
    if (!below.some((one) => element.contains(one) || one.contains(element))) return
    const ground = below.map(painted).find((one) => one)
    const found = ground ? contrast(rgb(colour), ground) : 0
    judged += 1
    if (found < 4.5) faults.push(`contrast ${found.toFixed(2)}: ${text}`)
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const [node, element] = [texts.currentNode, texts.currentNode.parentElement]
    const text = node.data.trim()
    if (!text || !element.checkVisibility()) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const box = range.getClientRects()[0]
    if (!box) continue
    if (element.closest('thead') && hidden(element.closest('thead'))) continue
    const style = getComputedStyle(element)
    judge(element, box, text, element instanceof SVGElement ? style.fill : style.color)
    const scrolled = element.closest(exempt)
    if (!scrolled && range.getBoundingClientRect().right > innerWidth + 0.5) faults.push(`too wide: ${text}`)
  }
  for (const cell of document.querySelectorAll('td')) {
    const before = getComputedStyle(cell, '::before')
    const place = cell.getBoundingClientRect() // it stands at the left
    const box = new DOMRect(place.x, place.y, 8, Math.min(place.height, 16))
    if (before.content !== 'none') judge(cell, box, before.content, before.color)
  }
  const wide = document.documentElement.scrollWidth
  if (wide > innerWidth) faults.push(`the page is ${wide} wide`)
  return { judged, faults, scripts: document.scripts.length, height: document.documentElement.scrollHeight }
})
