// Draws the diagrams of a page, in the colours that the reader chose, and again when they change.
(() => {
  const diagrams = [...document.querySelectorAll('pre.mermaid')].map((place) => ({ place, text: place.textContent }))
  const prefers = matchMedia('(prefers-color-scheme: dark)')
  const dark = () => {
    const chosen = document.body.dataset.theme
    return chosen === 'dark' || (chosen !== 'light' && prefers.matches)
  }
  const fontFamily = 'system-ui, sans-serif'
  let drawn = null
  const draw = async () => {
    if (drawn === dark()) return
    drawn = dark()
    const themeVariables = drawn
      ? { darkMode: true, background: '#131416', primaryColor: '#22303f', primaryTextColor: '#f2f4f6', primaryBorderColor: '#8aa0b6', lineColor: '#a9b8c6', clusterBkg: '#1b1f24', clusterBorder: '#56636f', titleColor: '#f2f4f6', edgeLabelBackground: '#131416' }
      : { background: '#ffffff', primaryColor: '#eaf1f8', primaryTextColor: '#15202b', primaryBorderColor: '#5b7690', lineColor: '#4a5b6b', clusterBkg: '#f7f9fb', clusterBorder: '#a9b8c6', titleColor: '#15202b', edgeLabelBackground: '#ffffff' }
    mermaid.initialize({ startOnLoad: false, securityLevel: 'strict', theme: 'base', themeVariables, fontFamily })
    for (const { place, text } of diagrams) {
      place.textContent = text
      delete place.dataset.processed
    }
    await mermaid.run({ nodes: diagrams.map(({ place }) => place) })
    for (const svg of document.querySelectorAll('.diagram svg')) {
      svg.style.minWidth = `${0.75 * svg.viewBox.baseVal.width}px` // letters stay readable: what is wider scrolls
    }
    document.documentElement.dataset.diagrams = 'drawn'
  }
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['data-theme'] })
  prefers.addEventListener('change', draw)
  draw()
})()
