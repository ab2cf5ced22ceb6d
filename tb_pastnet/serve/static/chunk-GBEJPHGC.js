function a(t){let o=n=>{let e=n===null||Number.isNaN(n)?"":String(n);return/[",\r\n]/.test(e)?`"${e.replaceAll('"','""')}"`:e},r=t.map(n=>Object.values(n));return[Object.keys(t[0]??{}).map(n=>n.replace(/[A-Z]/g,e=>`_${e.toLowerCase()}`)),...r].map(n=>`${n.map(o).join(",")}\r
`).join("")}export{a};
