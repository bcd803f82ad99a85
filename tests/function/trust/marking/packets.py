"""Packets as other software writes them, and statements of our own."""

from __future__ import annotations

from function.trust.statement import Producer, SourceType, Statement

SWAP = Statement("5f0c2d", SourceType.COMPOSED, "Ember 1.0", Producer("某公司 <A&B>", "Verteiler"))
PLAIN = Statement("9a77", SourceType.GENERATED, "Ember 1.0")

GENERATED = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"

FOREIGN = """<?xpacket begin='\ufeff' id='W5M0MpCehiHzreSzNTczkc9d'?>
<x:xmpmeta xmlns:x='adobe:ns:meta/' x:xmptk='Some Toolkit 7'>
 <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>
  <rdf:Description rdf:about='' xmlns:xmp='http://ns.adobe.com/xap/1.0/'
    xmlns:xmpMM='http://ns.adobe.com/xap/1.0/mm/'
    xmlns:stEvt='http://ns.adobe.com/xap/1.0/sType/ResourceEvent#'
    xmlns:stRef='http://ns.adobe.com/xap/1.0/sType/ResourceRef#'
    xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/'
    xmlns:tiff='http://ns.adobe.com/tiff/1.0/' xmlns:exif='http://ns.adobe.com/exif/1.0/'
    xmlns:dc='http://purl.org/dc/elements/1.1/'
    xmlns:mwg-rs='http://www.metadataworkinggroup.com/schemas/regions/'
    xmp:CreatorTool='Painter 3' xmpMM:InstanceID='xmp.iid:11-22'
    photoshop:Credit='Agency' tiff:Model='SecretCam' exif:GPSLatitude='52,31.2N'>
   <dc:creator><rdf:Seq><rdf:li>Jane Private</rdf:li></rdf:Seq></dc:creator>
   <mwg-rs:Regions rdf:parseType='Resource'><mwg-rs:Name>Jane Private</mwg-rs:Name></mwg-rs:Regions>
   <xmpMM:DerivedFrom stRef:instanceID='xmp.iid:00' stRef:filePath='/home/jane/private.psd'/>
   <xmpMM:History><rdf:Seq>
    <rdf:li stEvt:action='created' stEvt:softwareAgent='Painter 3'/>
    <rdf:li rdf:parseType='Resource'><stEvt:action>saved</stEvt:action>
     <stEvt:changed>/home/jane</stEvt:changed></rdf:li>
   </rdf:Seq></xmpMM:History>
  </rdf:Description>
  <rdf:Description rdf:about='' xmlns:i='http://iptc.org/std/Iptc4xmpExt/2008-02-29/'
    xmlns:T='http://www.tc260.org.cn/ns/AIGC/1.0/'>
   <i:DigitalSourceType rdf:resource='%s'/>
   <T:AIGC>{&quot;Label&quot;:&quot;1&quot;,&quot;ProduceID&quot;:&quot;x&quot;}</T:AIGC>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end='w'?>""".encode().replace(b"%s", GENERATED.encode())
"""A generated picture that somebody has edited, with much that is nobody's business."""

PRIVATE = (b"SecretCam", b"52,31", b"Jane", b"jane", b"filePath", b"GPS")
"""What of it may never be kept."""
